"""Alerts made to fire by faults of real processes."""
