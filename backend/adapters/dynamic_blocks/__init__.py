"""Blocks of request-scoped text that a deployment adds, found as Python entry points."""
