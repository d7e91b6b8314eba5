"""Restricted knowledge: access by ticket, sealed searches, budgets, audit, the scan of outgoing text."""
