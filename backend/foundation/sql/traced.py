"""A database whose units of work are spans of the work that waits for them; imported where traces are made."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, TypeVar

from sqlalchemy import Connection

from backend.foundation.sql.database import DEFAULT_TIMEOUT_SECONDS, Database
from backend.foundation.sql.statements import Change, Parameters, Row, Statement
from shared.tracing import inner_span_of

Result = TypeVar("Result")


class TracedDatabase:
    """Implements `Database` over another one; a span names the unit of work, and no statement or value."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._attributes = {"db.system.name": database.dialect}

    @property
    def dialect(self) -> Literal["sqlite", "postgresql"]:
        """Name the dialect."""
        return self._database.dialect

    @property
    def connections_in_use(self) -> int:
        """How many connections of its pool are in use now; 0 without a pool."""
        return getattr(self._database, "connections_in_use", 0)

    @property
    def connections_most(self) -> int:
        """How many there may be; 0 without a pool."""
        return getattr(self._database, "connections_most", 0)

    async def find(self, query: Statement, parameters: Parameters) -> Row | None:
        """Find a row."""
        with inner_span_of("sql find", self._attributes):
            return await self._database.find(query, parameters)

    async def read(
        self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS
    ) -> Result:
        """Read."""
        with inner_span_of(f"sql read {_name_of(work)}", self._attributes):
            return await self._database.read(work, timeout_seconds=timeout_seconds)

    async def snapshot(
        self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS
    ) -> Result:
        """Read one state."""
        with inner_span_of(f"sql snapshot {_name_of(work)}", self._attributes):
            return await self._database.snapshot(work, timeout_seconds=timeout_seconds)

    async def write(
        self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS
    ) -> Result:
        """Write."""
        with inner_span_of(f"sql write {_name_of(work)}", self._attributes):
            return await self._database.write(work, timeout_seconds=timeout_seconds)

    async def change(self, changes: Sequence[Change]) -> list[int]:
        """Change rows together."""
        with inner_span_of("sql change", self._attributes):
            return await self._database.change(changes)

    async def write_apart(self, work: Callable[[Connection], Result], *, timeout_seconds: float) -> Result:
        """Write over connections of its own."""
        with inner_span_of(f"sql write {_name_of(work)}", self._attributes):
            return await self._database.write_apart(work, timeout_seconds=timeout_seconds)

    async def ping(self) -> None:
        """Ask something."""
        await self._database.ping()

    async def check_writable(self) -> None:
        """Write a little."""
        await self._database.check_writable()

    async def close(self) -> None:
        """Close it."""
        await self._database.close()


def _name_of(work: Callable[[Connection], object]) -> str:
    """Return the name of the function that does the work, or that it was made in."""
    function: object = work
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return name.replace(".<locals>", "").removesuffix(".<lambda>").removesuffix(".work")
