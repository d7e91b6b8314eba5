"""SQLite with one writing thread and a few reading threads, each with its own connection.

A unit of work is handed to a thread once, however many statements it has. Writers of this process wait in the queue
of the writing thread and therefore never find the database locked. Against writers of other processes, transactions
begin with BEGIN IMMEDIATE and wait for the busy timeout.
"""

import asyncio
import shutil
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from sqlalchemy import URL, Connection, Engine, FromClause, QueuePool, create_engine, event
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler

from backend.foundation.sql.database import DEFAULT_TIMEOUT_SECONDS
from backend.foundation.sql.driver_errors import DISK_FULL, translate_sql_errors
from backend.foundation.sql.statements import (
    Change,
    Parameters,
    Row,
    Statement,
    change_together,
    driver_of,
    write_probe,
)
from shared.errors import Unavailable

_PING_TIMEOUT_SECONDS = 2.0
Result = TypeVar("Result")

_READERS = 4
_BUSY_TIMEOUT_MILLISECONDS = 10_000

# WAL with synchronous NORMAL: a killed process loses nothing; a power cut may lose the newest commits
# but never the order (https://www.sqlite.org/pragma.html#pragma_synchronous).
_PRAGMAS = (
    "PRAGMA wal_autocheckpoint = 10000",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -2000",
    # Without zeros over each freed page, which some builds of SQLite write: they made a deletion as long as its text.
    "PRAGMA secure_delete = FAST",
)

# A checkpoint waits for the disk. In a reading thread it delays no writer; SQLite's automatic checkpoint, which delays
# a commit, remains as the upper bound in case these do not succeed.
_WRITES_PER_CHECKPOINT = 100

_BRIEF_CHARACTERS = 65_536
"""What is written within a millisecond."""

LEAST_FREE_BYTES = 1_000_000
"""With less on its disk a turn may find no room: its log grows by what the turn writes."""


class SqliteDatabase:
    """A SQLite file; missing parent directories are created with it."""

    def __init__(self, url: URL, least_free_bytes: int = LEAST_FREE_BYTES) -> None:
        self._least_free_bytes = least_free_bytes
        path = url.database
        if not path or path == ":memory:" or path.startswith("file:"):
            raise ValueError("SQLite needs a file: sqlite+aiosqlite:///path")
        self._path = Path(path)
        plain_url = URL.create("sqlite", database=path)
        self._reader = _engine(plain_url, _READERS + 1)
        self._writer = _engine(plain_url, 1)
        self._brief = _engine(plain_url, 1, busy_milliseconds=0)
        self._is_writing = threading.Lock()
        self._own = _OfThread()
        self._connections: list[Connection] = []
        self._reading = ThreadPoolExecutor(_READERS, thread_name_prefix="sqlite-read")
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="sqlite-write")
        self._writes = 0

    @property
    def dialect(self) -> Literal["sqlite", "postgresql"]:
        """Return the name of SQLite's dialect."""
        return "sqlite"

    async def find(self, query: Statement, parameters: Parameters) -> Row | None:
        """Return one row by its key."""
        return next(iter(await self.find_few(query, parameters)), None)

    async def find_few(self, query: Statement, parameters: Parameters) -> Sequence[Row]:
        """Return rows by their key, read in the event loop's thread: in WAL mode a reader never waits for a writer."""
        connection = self._connection_of(self._reader)
        with translate_sql_errors(), connection.begin():
            return query.rows(connection, parameters)

    async def read(
        self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS
    ) -> Result:
        """Run a unit of work over a snapshot."""
        with translate_sql_errors():
            async with asyncio.timeout(timeout_seconds):
                return await self._run(self._reading, partial(self._transact, self._reader), work)

    async def snapshot(
        self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS
    ) -> Result:
        """Do as `read`."""
        return await self.read(work, timeout_seconds=timeout_seconds)

    async def write(
        self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS
    ) -> Result:
        """Run a unit of work behind all earlier ones and commit it."""
        with translate_sql_errors():
            async with asyncio.timeout(timeout_seconds):
                result = await self._run(self._writing, self._write_in_turn, work)
        self._count_write()
        return result

    async def change(self, changes: Sequence[Change]) -> list[int]:
        """Commit changes together; short ones in the event loop's thread, where nobody writes at the moment.

        That takes less than handing them to another thread. The disk is not waited for: see `_PRAGMAS`.
        """
        work = partial(change_together, changes=changes)
        if _characters_in(changes) > _BRIEF_CHARACTERS:
            return await self.write(work)
        with translate_sql_errors():
            counts = self._write_now(work)
        if counts is None:
            return await self.write(work)
        self._count_write()
        return counts

    async def write_apart(self, work: Callable[[Connection], Result], *, timeout_seconds: float) -> Result:
        """Do as `write`: a file has one writer, and its units of work are short."""
        return await self.write(work, timeout_seconds=timeout_seconds)

    async def ping(self) -> None:
        """Send a cheap query."""
        await self.read(_ping, timeout_seconds=_PING_TIMEOUT_SECONDS)

    async def check_writable(self) -> None:
        """Write a little; SQLite would write into the room that its log has, when there is no more on the disk."""
        if shutil.disk_usage(self._path.parent).free < self._least_free_bytes:
            raise Unavailable(DISK_FULL, retry_after_seconds=1)
        await self.write(write_probe, timeout_seconds=_PING_TIMEOUT_SECONDS)

    async def close(self) -> None:
        """Wait for the running units of work, then close the connections."""
        for executor in (self._reading, self._writing):
            await asyncio.to_thread(executor.shutdown)
        for connection in self._connections:
            connection.close()
        for engine in (self._reader, self._writer, self._brief):
            engine.dispose()

    async def _run(
        self,
        executor: ThreadPoolExecutor,
        transact: Callable[[Callable[[Connection], Result]], Result],
        work: Callable[[Connection], Result],
    ) -> Result:
        """Run in a thread; when the caller is cancelled while it waits, the transaction still runs to its end."""
        return await asyncio.get_running_loop().run_in_executor(executor, transact, work)

    def _write_now(self, work: Callable[[Connection], Result]) -> Result | None:
        """Run a unit of work in this thread; None where another one, or another process, writes."""
        if not self._is_writing.acquire(blocking=False):
            return None
        try:
            return self._transact(self._brief, work)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            return None
        finally:
            self._is_writing.release()

    def _write_in_turn(self, work: Callable[[Connection], Result]) -> Result:
        with self._is_writing:
            return self._transact(self._writer, work)

    def _count_write(self) -> None:
        self._writes += 1
        if self._writes % _WRITES_PER_CHECKPOINT == 0:
            self._reading.submit(self._checkpoint)

    def _checkpoint(self) -> None:
        driver_of(self._connection_of(self._reader)).execute("PRAGMA wal_checkpoint(PASSIVE)")
        # The first write behind it waits for the disk where it begins the file of the log anew.
        self._writing.submit(self._write_in_turn, write_probe)

    def _transact(self, engine: Engine, work: Callable[[Connection], Result]) -> Result:
        connection = self._connection_of(engine)
        with connection.begin():
            driver_of(connection).execute("BEGIN" if engine is self._reader else "BEGIN IMMEDIATE")
            return work(connection)

    def _connection_of(self, engine: Engine) -> Connection:
        """Return the connection of the current thread, opened at its first use; only the event loop's may have two."""
        opened = self._own.connections
        if engine not in opened:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            opened[engine] = engine.connect()
            self._connections.append(opened[engine])
        return opened[engine]


class _OfThread(threading.local):
    """What each thread has of its own."""

    def __init__(self) -> None:
        self.connections: dict[Engine, Connection] = {}


class _HintingCompiler(SQLiteCompiler):
    """Writes the hint of a table behind its name, where SQLite expects `INDEXED BY`; SQLAlchemy leaves it out."""

    def get_from_hint_text(self, table: FromClause, text: str | None) -> str | None:
        """Return the hint as it is."""
        del table
        return text


def _characters_in(changes: Sequence[Change]) -> int:
    rows = [each for change in changes for each in change.parameters]
    return sum([len(value) for row in rows for value in row.values() if isinstance(value, str)])


def _engine(url: URL, pool_size: int, busy_milliseconds: int = _BUSY_TIMEOUT_MILLISECONDS) -> Engine:
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=pool_size,
        max_overflow=0,
        connect_args={"check_same_thread": False, "cached_statements": 512},
        hide_parameters=True,
    )

    def configure(dbapi_connection: sqlite3.Connection, _record: object) -> None:
        # The driver's own transactions begin late and deferred.
        dbapi_connection.isolation_level = None
        for pragma in (f"PRAGMA busy_timeout = {busy_milliseconds}", *_PRAGMAS):
            dbapi_connection.execute(pragma)

    event.listen(engine, "connect", configure)
    engine.dialect.statement_compiler = _HintingCompiler
    return engine


def _ping(connection: Connection) -> None:
    connection.exec_driver_sql("SELECT 1")
