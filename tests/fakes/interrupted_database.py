"""Databases on which somebody else acts in between, and on which a transaction waits before it ends."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from sqlalchemy import Connection
from sqlalchemy.util import await_only

from backend.foundation.sql.database import Database


class InterruptedDatabase:
    """A database before whose access of a number, counted from 0, somebody else acts."""

    def __init__(self, database: Database, at: int, other: Callable[[], Awaitable[object]]) -> None:
        self._database = database
        self._other = other
        self._left = at
        self.was_interrupted = False

    @property
    def dialect(self) -> Literal["sqlite", "postgresql"]:
        return self._database.dialect

    def __getattr__(self, name: str) -> Any:
        """Return an access that is counted."""
        access = getattr(self._database, name)

        async def counted(*given: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left == -1:
                self.was_interrupted = True
                await self._other()
            return await access(*given, **options)

        return counted


class HeldDatabase:
    """A PostgreSQL whose writes have done their work, and end when they are told to."""

    dialect = "postgresql"

    def __init__(self, database: Database) -> None:
        self._database = database
        self.is_held = asyncio.Event()
        self.may_end = asyncio.Event()

    async def write(self, work: Callable[[Connection], Any], **options: Any) -> Any:
        def held(connection: Connection) -> Any:
            done = work(connection)
            self.is_held.set()
            await_only(self.may_end.wait())
            return done

        return await self._database.write(held, **options)
