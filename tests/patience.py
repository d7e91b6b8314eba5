"""How long a test waits for what has to come, at most."""

PATIENCE_SECONDS = 600.0
"""Ends a wait for what never comes, sooner than the whole test is ended; no slow machine takes so long."""
