"""Statements that are built once, and run with named parameters."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection, Executable, text

Parameters = Mapping[str, object]
Row = Mapping[str, Any]
"""A row by column; SQLAlchemy knows the types of the values, and the type checker does not."""


class Statement:
    """A statement with named parameters; an INSERT or UPDATE sets the columns that they name."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement

    def rows(self, connection: Connection, parameters: Parameters) -> Sequence[Row]:
        """Run it and return its rows, by column."""
        return cast(Sequence[Row], connection.execute(self._statement, parameters).mappings().all())

    def first(self, connection: Connection, parameters: Parameters) -> Row | None:
        """Run it and return its first row."""
        return next(iter(self.rows(connection, parameters)), None)

    def change(self, connection: Connection, *parameters: Parameters) -> int:
        """Run it for each set of parameters, which all have the same names; return how many rows it changed."""
        return connection.execute(self._statement, parameters[0] if len(parameters) == 1 else parameters).rowcount


# The one row that every database has. Where somebody else holds it, an upgrade is under way, and nothing is written:
# that must not take all processes out of their balancer.
_WRITE_PROBE = {
    "sqlite": text("UPDATE alembic_version SET version_num = version_num"),
    "postgresql": text("""
        UPDATE alembic_version SET version_num = version_num
        WHERE version_num IN (SELECT version_num FROM alembic_version FOR UPDATE SKIP LOCKED)
    """),
}


def write_probe(connection: Connection) -> None:
    """Write a row as it is, to find out whether the database takes writes."""
    connection.execute(_WRITE_PROBE[connection.dialect.name])


def driver_of(connection: Connection) -> sqlite3.Connection:
    """Return SQLite's own connection beneath SQLAlchemy's."""
    return cast(sqlite3.Connection, connection.connection.driver_connection)
