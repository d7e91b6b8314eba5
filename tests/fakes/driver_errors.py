"""One error of every class that the drivers of databases and of Redis raise."""

import asyncio
import sqlite3
from collections.abc import Iterator
from typing import Any

import asyncpg
from redis import exceptions as redis_exceptions
from sqlalchemy import exc

SQLITE_CODES = sorted(
    {
        code & 0xFF
        for name, code in vars(sqlite3).items()
        if name.startswith("SQLITE_") and isinstance(code, int) and name.isupper() and 0 < code <= 26
    }
)


def subclasses(root: type[Any]) -> list[type[Any]]:
    """Return a class and all that are derived from it."""
    found = {root: None}
    for each in root.__subclasses__():
        found |= dict.fromkeys(subclasses(each))
    return list(found)


def made(kind: type[Any]) -> BaseException:
    """Make an error of a class, whatever it wants to be made of."""
    error = BaseException.__new__(kind, "refused")
    error.args = ("refused",)
    return error


def sqlite_errors() -> Iterator[sqlite3.Error]:
    """Make an error for each primary result code, and one of each class without a code."""
    for code in SQLITE_CODES:
        error = sqlite3.OperationalError(f"code {code}")
        error.sqlite_errorcode = code
        yield error
    for kind in subclasses(sqlite3.Error):
        yield kind("no code")


def asyncpg_errors() -> list[BaseException]:
    """Make an error of each class of asyncpg."""
    roots = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
    return [made(kind) for root in roots for kind in subclasses(root)]


def wrapped(error: BaseException) -> exc.DBAPIError:
    """Wrap a driver's error as SQLAlchemy does."""
    return exc.DBAPIError("SELECT 1", {}, error)


def connection_errors() -> list[BaseException]:
    """Make the errors with which a connection ends, whatever the driver."""
    return [
        OSError("refused"),
        ConnectionResetError("reset"),
        TimeoutError("late"),
        asyncio.CancelledError("torn down"),
        asyncio.IncompleteReadError(b"", 1),
        exc.TimeoutError("the pool is empty"),
        exc.ResourceClosedError("closed"),
        exc.PendingRollbackError("broken"),
    ]


def redis_errors() -> list[BaseException]:
    """Make an error of each class of the Redis client, and of each code of a refusal that has no class."""
    codes = ("MISCONF", "NOREPLICAS", "UNKILLABLE", "BUSY")
    return [
        *(made(kind) for kind in subclasses(redis_exceptions.RedisError)),
        *(redis_exceptions.ResponseError(f"{code} refused") for code in codes),
        RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed"),
    ]


def all_errors() -> list[BaseException]:
    """Make one of each, and a defect of our own."""
    postgres = asyncpg_errors()
    return [
        *sqlite_errors(),
        *postgres,
        *map(wrapped, postgres),
        *connection_errors(),
        *redis_errors(),
        KeyError("a defect"),
    ]
