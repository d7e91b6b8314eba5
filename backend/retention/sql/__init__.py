"""Expired rows, in SQL."""
