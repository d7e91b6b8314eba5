"""The database that an operator's address chooses; the client of the other one is never imported."""

import sqlite3
from typing import cast

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from backend.foundation.sql.database import POOL_WAIT_SECONDS, Database
from shared.environment import cause_of, redact_address
from shared.errors import Unavailable
from shared.tracing import is_tracing


def open_database(url: str, *, pool_wait_seconds: float = POOL_WAIT_SECONDS) -> Database:
    """Open `sqlite+aiosqlite:///path` or `postgresql+asyncpg://…`; connections are made at first use.

    Work for which PostgreSQL has no free connection waits for one, or for one to be made, `pool_wait_seconds` at most.

    Raises:
        ValueError: the address is malformed or names another database, or SQLite is given no file.
    """
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ValueError("a database address looks like sqlite+aiosqlite:///path or postgresql+asyncpg://…") from error
    match parsed.get_backend_name():
        case "sqlite":
            from backend.foundation.sql.sqlite import SqliteDatabase

            return SqliteDatabase(parsed)
        case "postgresql":
            from backend.foundation.sql.postgres import PostgresDatabase

            return PostgresDatabase(parsed, pool_wait_seconds)
        case other:
            raise ValueError(f"the database must be sqlite or postgresql, not {other}")


def trace_database(database: Database) -> Database:
    """Return the database with spans for its work, where traces are made."""
    if not is_tracing():
        return database
    from backend.foundation.sql.traced import TracedDatabase

    return cast(Database, TracedDatabase(database))


async def check_database_reachable(database: Database, url: str) -> None:
    """Ask the database something at the start, so that an operator learns in one line what is wrong with its address.

    Raises:
        ValueError: the database does not answer or refuses the connection; the text holds neither user nor password.
    """
    try:
        await database.ping()
    except (Unavailable, DBAPIError, sqlite3.Error) as error:
        raise ValueError(f"cannot use {redact_address(url)} ({cause_of(error)})") from None
