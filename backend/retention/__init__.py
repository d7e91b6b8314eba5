"""Retention of unused data, and erasure and export of a person's data."""
