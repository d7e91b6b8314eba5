"""Lookups: searches and readings of knowledge by programs that have no conversation here, over MCP."""
