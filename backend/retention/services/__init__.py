"""Sweeps of what was untouched for too long."""
