"""SQLite: one writing thread, a few reading threads, a connection each.

A unit of work costs one hop into a thread, however many statements it has; the writing thread is the queue in
which writers wait, so that within a process nobody ever meets a locked database. Other processes are met with
BEGIN IMMEDIATE and a busy timeout.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, TypeVar

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event

from backend.adapters.sql.driver_errors import translated

_PING_TIMEOUT_SECONDS = 2.0
Result = TypeVar("Result")

_READERS = 4
_BUSY_TIMEOUT_MILLISECONDS = 10_000

# WAL with synchronous NORMAL: a killed process loses nothing; a power cut may lose the newest commits
# but never the order (https://www.sqlite.org/pragma.html#pragma_synchronous).
_PRAGMAS = (
    "PRAGMA wal_autocheckpoint = 10000",
    f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MILLISECONDS}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16000",
)

# A checkpoint waits for the disk. Run beside the writer it is in nobody's way; the automatic one, which makes a
# commit wait, remains as the bound should these not get through.
_WRITES_PER_CHECKPOINT = 100


class SqliteDatabase:
    """A SQLite file, whose parents are created with it."""

    def __init__(self, url: URL) -> None:
        path = url.database
        if not path or path == ":memory:" or path.startswith("file:"):
            raise ValueError("SQLite needs a file: sqlite+aiosqlite:///path")
        self._path = Path(path)
        plain_url = URL.create("sqlite", database=path)
        self._reader = _engine(plain_url, "BEGIN", _READERS)
        self._writer = _engine(plain_url, "BEGIN IMMEDIATE", 1)
        self._reading = ThreadPoolExecutor(_READERS, thread_name_prefix="sqlite-read")
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="sqlite-write")
        self._file_made = threading.Event()
        self._writes = 0

    @property
    def dialect(self) -> Literal["sqlite", "postgresql"]:
        """SQLite's."""
        return "sqlite"

    async def read(self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = 60.0) -> Result:
        """Run a unit of work over a snapshot."""
        with translated():
            async with asyncio.timeout(timeout_seconds):
                return await self._run(self._reading, self._reader, work)

    async def snapshot(self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = 60.0) -> Result:
        """Do as `read`."""
        return await self.read(work, timeout_seconds=timeout_seconds)

    async def write(self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = 60.0) -> Result:
        """Run a unit of work behind all earlier ones and commit it."""
        with translated():
            async with asyncio.timeout(timeout_seconds):
                result = await self._run(self._writing, self._writer, work)
        self._count_write()
        return result

    async def ping(self) -> None:
        """Ask it something cheap."""
        await self.read(_ping, timeout_seconds=_PING_TIMEOUT_SECONDS)

    async def close(self) -> None:
        """Finish what runs, then close the connections."""
        for executor in (self._reading, self._writing):
            await asyncio.to_thread(executor.shutdown)
        for engine in (self._reader, self._writer):
            engine.dispose()

    async def _run(self, executor: ThreadPoolExecutor, engine: Engine, work: Callable[[Connection], Result]) -> Result:
        """Run in a thread; who is cancelled while waiting leaves a transaction that ends by itself."""
        return await asyncio.get_running_loop().run_in_executor(executor, self._transact, engine, work)

    def _count_write(self) -> None:
        self._writes += 1
        if self._writes % _WRITES_PER_CHECKPOINT == 0:
            self._reading.submit(self._checkpoint)

    def _checkpoint(self) -> None:
        with self._reader.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _transact(self, engine: Engine, work: Callable[[Connection], Result]) -> Result:
        if not self._file_made.is_set():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file_made.set()
        with engine.begin() as connection:
            return work(connection)


def _engine(url: URL, begin: str, pool_size: int) -> Engine:
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=pool_size,
        max_overflow=0,
        connect_args={"check_same_thread": False, "cached_statements": 512},
    )

    def configure(dbapi_connection: Any, _record: object) -> None:
        # The driver's own transactions begin late and deferred; ours are begun below.
        dbapi_connection.isolation_level = None
        for pragma in _PRAGMAS:
            dbapi_connection.execute(pragma)

    def begin_transaction(connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        driver.execute(begin)

    event.listen(engine, "connect", configure)
    event.listen(engine, "begin", begin_transaction)
    return engine


def _ping(connection: Connection) -> None:
    connection.exec_driver_sql("SELECT 1")
