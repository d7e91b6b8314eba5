"""What the backend keeps its state in: SQLite with memory, or PostgreSQL with Valkey as it is deployed."""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any, cast

import asyncpg

from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer

STATISTICS_SECONDS = 1.5
"""A session counts itself at most once a second."""

_SESSIONS = "SELECT sessions FROM pg_stat_database WHERE datname = $1"
STORES = {"sqlite": "SQLite and memory", "postgres": "PostgreSQL and Valkey"}


@dataclass(frozen=True)
class Store:
    """A store, empty at first; `settings` are the backend's."""

    name: str
    settings: Mapping[str, str]
    dsn: str = ""
    database: str = ""

    def sessions_opened(self) -> int | None:
        """Return how many connections the database has seen so far, None for SQLite."""
        return asyncio.run(self._sessions()) if self.dsn else None

    async def _sessions(self) -> int:
        connection: Any = await cast(Any, asyncpg).connect(self.dsn)
        try:
            await asyncio.sleep(STATISTICS_SECONDS)
            return int(await connection.fetchval(_SESSIONS, self.database))
        finally:
            await connection.close()


@contextmanager
def bench_store(name: str) -> Generator[Store]:
    """Start what the store needs, and stop it in the end."""
    if name == "sqlite":
        yield Store(name, {})
        return
    with ExitStack() as stack:
        postgres, valkey = stack.enter_context(closing(PostgresServer())), stack.enter_context(closing(ValkeyServer()))
        postgres.start()
        valkey.start()
        database = postgres.new_database()
        settings = {"BACKEND_DATABASE_URL": postgres.url(database), "BACKEND_REDIS_URL": valkey.url}
        yield Store(name, settings, postgres.url("postgres", driver=""), database)
