"""The tables of the backend under test, read beside it."""

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import asyncpg

Row = tuple[Any, ...]


class Database(Protocol):
    """A database that is read while the backend writes it; `url` is how the backend names it."""

    @property
    def url(self) -> str: ...

    async def tables(self) -> list[str]:
        """Return the names of all tables."""
        ...

    async def rows(self, query: str) -> Sequence[Row]:
        """Return what a query finds."""
        ...


class SqliteDatabase:
    """A file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def url(self) -> str:
        return f"sqlite+aiosqlite:///{self._path}"

    async def tables(self) -> list[str]:
        return [name for (name,) in await self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]

    async def rows(self, query: str) -> Sequence[Row]:
        with contextlib.closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as database:
            return database.execute(query).fetchall()


class PostgresDatabase:
    """A database of a server, by its address for SQLAlchemy."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def tables(self) -> list[str]:
        return [name for (name,) in await self.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]

    async def rows(self, query: str) -> Sequence[Row]:
        connection = await cast(Any, asyncpg).connect(self.url.replace("+asyncpg", ""))
        try:
            return [tuple(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()
