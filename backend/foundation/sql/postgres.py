"""PostgreSQL: a pool of asyncpg connections."""

import asyncio
from collections.abc import Callable
from typing import Literal, TypeVar

from sqlalchemy import URL, Connection, event
from sqlalchemy.ext.asyncio import create_async_engine

from backend.foundation.sql.driver_errors import sql_errors_translated, withhold_values
from backend.foundation.sql.statements import Parameters, Row, Statement

_PING_TIMEOUT_SECONDS = 2.0
Result = TypeVar("Result")

_POOL_SIZE = 10
_POOL_OVERFLOW = 10
_POOL_WAIT_SECONDS = 10
_CONNECTION_AGE_SECONDS = 1800
_CONNECT_TIMEOUT_SECONDS = 5
_SERVER_SETTINGS = {
    "application_name": "ballast",
    "statement_timeout": "30s",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "60s",
}


class PostgresDatabase:
    """A PostgreSQL database; a connection that died while idle is replaced before it is used."""

    def __init__(self, url: URL) -> None:
        self._engine = create_async_engine(
            url.set(drivername="postgresql+asyncpg"),
            pool_size=_POOL_SIZE,
            max_overflow=_POOL_OVERFLOW,
            pool_timeout=_POOL_WAIT_SECONDS,
            pool_recycle=_CONNECTION_AGE_SECONDS,
            pool_pre_ping=True,
            connect_args={"timeout": _CONNECT_TIMEOUT_SECONDS, "server_settings": _SERVER_SETTINGS},
            hide_parameters=True,
        )
        event.listen(self._engine.sync_engine, "handle_error", withhold_values)
        # Without a transaction around it a read costs two round trips less; each statement is its own snapshot
        # either way (READ COMMITTED).
        self._reader = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._snapshots = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    @property
    def dialect(self) -> Literal["sqlite", "postgresql"]:
        """Return the name of PostgreSQL's dialect."""
        return "postgresql"

    async def find(self, query: Statement, parameters: Parameters) -> Row | None:
        """Return one row by its key."""
        return await self.read(lambda connection: query.first(connection, parameters))

    async def read(self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = 60.0) -> Result:
        """Run a unit of work that changes nothing."""
        with sql_errors_translated():
            async with asyncio.timeout(timeout_seconds), self._reader.connect() as connection:
                return await connection.run_sync(work)

    async def snapshot(self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = 60.0) -> Result:
        """Run a unit of work over one state of the database."""
        with sql_errors_translated():
            async with asyncio.timeout(timeout_seconds), self._snapshots.connect() as connection:
                return await connection.run_sync(work)

    async def write(self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = 60.0) -> Result:
        """Run a unit of work and commit it; a cancelled one is rolled back and its connection replaced."""
        with sql_errors_translated():
            async with asyncio.timeout(timeout_seconds), self._engine.begin() as connection:
                return await connection.run_sync(work)

    async def ping(self) -> None:
        """Send a cheap query."""
        await self.read(_ping, timeout_seconds=_PING_TIMEOUT_SECONDS)

    async def close(self) -> None:
        """Close the connections."""
        await self._engine.dispose()


def _ping(connection: Connection) -> None:
    connection.exec_driver_sql("SELECT 1")
