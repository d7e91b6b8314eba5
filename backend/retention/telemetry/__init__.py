"""Metrics and log lines of sweeps."""
