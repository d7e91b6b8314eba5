"""A database as two verbs, so that no session is ever held across anything but its own statements.

The unit of work is a plain function over a SQLAlchemy `Connection`: it runs whole, in one transaction, in a
thread on SQLite and in a greenlet on PostgreSQL. It touches nothing but its connection and its arguments.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeVar

from sqlalchemy import Connection
from sqlalchemy.util import await_only

from backend.foundation.sql.statements import Change, Parameters, Row, Statement

Result = TypeVar("Result")

POOL_WAIT_SECONDS = 5.0
DEFAULT_TIMEOUT_SECONDS = 30.0
FIND_TIMEOUT_SECONDS = 10.0
"""The calls of a database that has frozen end so late; nothing else ends them."""


class Database(Protocol):
    """An open database.

    Raises (every call):
        Unavailable: no connection, a lock that nobody gave back, a full disk. Retryable.
        InvalidRequest: text that the database cannot hold, such as a NUL character.

    A call that is cancelled or times out has either committed whole or left nothing.
    """

    @property
    def dialect(self) -> Literal["sqlite", "postgresql"]:
        """Name the dialect of SQL that the database speaks."""
        ...

    async def find(self, query: Statement, parameters: Parameters) -> Row | None:
        """Return one row by its key, the shortest of reads: on SQLite it takes less than handing it to a thread."""
        ...

    async def find_few(self, query: Statement, parameters: Parameters) -> Sequence[Row]:
        """Return the few rows that have a key, as `find` does."""
        ...

    async def read(
        self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS
    ) -> Result:
        """Run a unit of work that changes nothing; it waits for no writer.

        On PostgreSQL each of its statements sees what is committed by then; `snapshot` is for work that needs more.
        """
        ...

    async def snapshot(
        self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS
    ) -> Result:
        """Run a unit of work that changes nothing, and whose statements all see the same state."""
        ...

    async def write(
        self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS
    ) -> Result:
        """Run a unit of work and commit it; an exception in it rolls it back."""
        ...

    async def change(self, changes: Sequence[Change]) -> list[int]:
        """Commit changes together, as `change_together` runs them; return how many rows each met.

        Raises:
            NothingMet: a change that must meet a row met none, and nothing was changed.
        """
        ...

    async def write_apart(self, work: Callable[[Connection], Result], *, timeout_seconds: float) -> Result:
        """Do as `write`, over connections that no other work can hold: for short work that a process must not miss.

        There are so few of them that only the lease and the taking of turns may use them.
        """
        ...

    async def ping(self) -> None:
        """Send a cheap query."""
        ...

    async def check_writable(self) -> None:
        """Write a little, for a database that answers may be full, or a copy that nobody may write to."""
        ...

    async def close(self) -> None:
        """Wait for the running units of work, then close the connections."""
        ...


def compute_off_event_loop(connection: Connection, work: Callable[[], Result]) -> Result:
    """Run a long computation inside a unit of work without blocking the event loop; it must not use the connection.

    On PostgreSQL a unit of work runs on the event loop, so the computation goes into a thread; on SQLite the unit of
    work has a thread of its own already.
    """
    return await_only(asyncio.to_thread(work)) if connection.dialect.is_async else work()
