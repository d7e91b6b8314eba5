"""Locks for what no row stands for: counting rows before one is added."""

from sqlalchemy import Connection, text

_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")


def lock_name(connection: Connection, name: str) -> None:
    """Wait for every other transaction that has locked this name; SQLite has one writer at a time anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK, {"name": name})
