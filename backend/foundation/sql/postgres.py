"""PostgreSQL: a pool of asyncpg connections."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, TypeVar, cast
from urllib.parse import urlencode

import asyncpg
from sqlalchemy import URL, Connection, Pool, QueuePool, event
from sqlalchemy.dialects.postgresql.asyncpg import AsyncAdapt_asyncpg_dbapi
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.util import await_only, greenlet_spawn

from backend.foundation.sql.database import DEFAULT_TIMEOUT_SECONDS, FIND_TIMEOUT_SECONDS, POOL_WAIT_SECONDS
from backend.foundation.sql.driver_errors import translate_sql_errors, withhold_values, wrap_driver_error
from backend.foundation.sql.statements import (
    Change,
    Parameters,
    Row,
    Statement,
    change_together,
    join_changes,
    write_probe,
)
from shared.tcp_keepalive import keep_asking

_PING_TIMEOUT_SECONDS = 2.0
_TLS_OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl")
Result = TypeVar("Result")

_CONNECTIONS = 20
"""Opened as they are needed, and kept: four processes, two of which a rolling update adds, share PostgreSQL's 100."""

_CONNECTIONS_APART = 2
"""One renews the lease of the process, the other takes turns over: neither waits for callers, nor for the other."""

_CONNECTION_AGE_SECONDS = 1800
_STATEMENTS_KEPT = 500
"""Prepared statements a connection; all statements of the product fit."""

_NAME = {"application_name": "ballast"}
# A process that stands still in a transaction must not keep its locks for longer than its lease, about: others wait.
_LIMITS = {"statement_timeout": "30s", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "10s"}
# An address behind which nobody is left must not hold a session of the server for hours.
_SERVER_KEEPALIVE = {"tcp_keepalives_idle": "15", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3"}
_OWN_SESSIONS = {
    "server_settings": _NAME | _LIMITS | _SERVER_KEEPALIVE,
    "prepared_statement_cache_size": _STATEMENTS_KEPT,
    # Those that are sent without SQLAlchemy are kept apart; their texts are some kilobytes long.
    "statement_cache_size": _STATEMENTS_KEPT,
    "max_cached_statement_lifetime": 0,
    "max_cacheable_statement_size": 0,
}
_LENT_SESSIONS = {
    "server_settings": _NAME,
    "prepared_statement_cache_size": 0,
    "statement_cache_size": 0,
    "prepared_statement_name_func": str,  # none: the next transaction may find another session behind its name
}
"""What poolers take: none passes limits on, and each statement is prepared in the transaction that runs it."""
_SET_LIMITS = f"SELECT {', '.join(f'set_config({name!r}, {limit!r}, true)' for name, limit in _LIMITS.items())}"
_DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    AsyncAdapt_asyncpg_dbapi.Error,
)


class PostgresDatabase:
    """A PostgreSQL database; a connection that broke while idle is replaced before it is used.

    That costs no round trip: the end of a connection is seen as it comes, and where a network swallows it, keepalive
    packets find out. A server that answers nothing is noticed by the timeout of each call.
    """

    def __init__(self, url: URL, pool_wait_seconds: float = POOL_WAIT_SECONDS) -> None:
        self._url = url
        self._pool_wait_seconds = pool_wait_seconds
        self._has_looked = False
        self._use(are_lent=False)

    @property
    def connections_in_use(self) -> int:
        """Return how many connections do work now, but for those that are kept apart."""
        return cast(QueuePool, self._engine.pool).checkedout()

    @property
    def connections_most(self) -> int:
        """Return how many there may be."""
        return _CONNECTIONS

    @property
    def dialect(self) -> Literal["sqlite", "postgresql"]:
        """Return the name of PostgreSQL's dialect."""
        return "postgresql"

    async def find(self, query: Statement, parameters: Parameters) -> Row | None:
        """Return one row by its key."""
        return next(iter(await self.find_few(query, parameters)), None)

    async def find_few(self, query: Statement, parameters: Parameters) -> Sequence[Row]:
        """Return rows by their key."""
        with translate_sql_errors(*_DRIVER_ERRORS):
            async with asyncio.timeout(FIND_TIMEOUT_SECONDS):
                return await greenlet_spawn(self._find, query, parameters)

    async def read(
        self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS
    ) -> Result:
        """Run a unit of work that changes nothing."""
        with translate_sql_errors(*_DRIVER_ERRORS):
            async with asyncio.timeout(timeout_seconds), self._reader.connect() as connection:
                return await connection.run_sync(work)

    async def snapshot(
        self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS
    ) -> Result:
        """Run a unit of work over one state of the database."""
        with translate_sql_errors(*_DRIVER_ERRORS):
            async with asyncio.timeout(timeout_seconds), self._snapshots.connect() as connection:
                return await connection.run_sync(work)

    async def write(
        self, work: Callable[[Connection], Result], *, timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS
    ) -> Result:
        """Run a unit of work and commit it; a cancelled one is rolled back and its connection replaced."""
        with translate_sql_errors(*_DRIVER_ERRORS):
            async with asyncio.timeout(timeout_seconds), self._engine.begin() as connection:
                return await connection.run_sync(work)

    async def change(self, changes: Sequence[Change]) -> list[int]:
        """Commit changes together: as one statement, which is a transaction by itself, where they can be one."""
        with translate_sql_errors(*_DRIVER_ERRORS):
            async with asyncio.timeout(DEFAULT_TIMEOUT_SECONDS):
                counts = await greenlet_spawn(self._change_at_once, changes)
        return counts if counts is not None else await self.write(partial(change_together, changes=changes))

    async def write_apart(self, work: Callable[[Connection], Result], *, timeout_seconds: float) -> Result:
        """Run a unit of work as `write` does, over connections that no other work can hold."""
        with translate_sql_errors(*_DRIVER_ERRORS):
            async with asyncio.timeout(timeout_seconds), self._apart.begin() as connection:
                return await connection.run_sync(work)

    async def ping(self) -> None:
        """Send a cheap query; the first call is to come before any other work."""
        if not self._has_looked:
            await self._look_for_pooler()
        await self.read(_ping, timeout_seconds=_PING_TIMEOUT_SECONDS)

    async def check_writable(self) -> None:
        """Write a little."""
        await self.write(write_probe, timeout_seconds=_PING_TIMEOUT_SECONDS)

    async def close(self) -> None:
        """Close the connections."""
        for engine in (self._engine, self._apart):
            await engine.dispose()

    async def _look_for_pooler(self) -> None:
        probe = _engine(self._url, 1, self._pool_wait_seconds, are_lent=True)
        try:
            with translate_sql_errors(*_DRIVER_ERRORS):
                async with asyncio.timeout(_PING_TIMEOUT_SECONDS), probe.connect() as connection:
                    are_lent = await connection.run_sync(_is_lent)
        finally:
            await probe.dispose()
        self._has_looked = True
        if are_lent:
            await self.close()
            self._use(are_lent=True)

    def _use(self, *, are_lent: bool) -> None:
        """Open sessions of this process alone, or such as a pooler lends it for a transaction each."""
        self._are_lent = are_lent
        self._engine = _engine(self._url, _CONNECTIONS, self._pool_wait_seconds, are_lent=are_lent)
        self._apart = _engine(self._url, _CONNECTIONS_APART, self._pool_wait_seconds, are_lent=are_lent)
        # Without a transaction around it a read costs two round trips less; each statement is its own snapshot
        # either way (READ COMMITTED).
        alone = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._reader = self._engine if are_lent else alone
        self._snapshots = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    def _find(self, query: Statement, parameters: Parameters) -> Sequence[Row]:
        compiled = query.compile(self._engine.dialect, parameters)
        if compiled is None:
            raise TypeError("A row is found by parameters alone.")
        return [compiled.row(found.items()) for found in self._fetch(compiled.text, compiled.values(parameters))]

    def _change_at_once(self, changes: Sequence[Change]) -> list[int] | None:
        joined = join_changes(self._engine.dialect, changes)
        return joined.run(lambda text, values: self._fetch(text, values)[0]) if joined is not None else None

    def _fetch(self, text: str, values: Sequence[object]) -> Sequence[Any]:
        """Run one statement, which is a transaction by itself, and return its rows.

        The driver prepares it and keeps it by its text. SQLAlchemy, whose pool lends the connection, would take longer
        over it than driver and database together.
        """
        with _lent(self._engine.sync_engine.pool) as connection:
            try:
                return await_only(
                    _fetch_lent(connection, text, values) if self._are_lent else connection.fetch(text, *values)
                )
            except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                raise wrap_driver_error(text, error) from error


@contextmanager
def _lent(pool: Pool) -> Generator[Any]:
    """Lend a connection; one that may not have come to the end of its statement is closed."""
    lent, is_sound = pool.connect(), False
    try:
        yield lent.driver_connection
        is_sound = True
    except DBAPIError:
        is_sound = True
        raise
    finally:
        if is_sound:
            lent.close()
        else:
            lent.invalidate()


def _engine(url: URL, connections: int, wait_seconds: float, *, are_lent: bool) -> AsyncEngine:
    tls = {name: url.query[name] for name in _TLS_OPTIONS if name in url.query}
    engine = create_async_engine(
        url.difference_update_query(_TLS_OPTIONS).set(drivername="postgresql+asyncpg"),
        pool_size=connections,
        max_overflow=0,
        # The session of the server that was used last has its statements planned and in the caches of a processor.
        pool_use_lifo=True,
        pool_timeout=wait_seconds,
        pool_recycle=_CONNECTION_AGE_SECONDS,
        connect_args={
            "timeout": wait_seconds,
            **(_LENT_SESSIONS if are_lent else _OWN_SESSIONS),
            # The driver reads these in an address alone; all else that it gets by name goes before what stands there.
            **({"dsn": f"postgresql://?{urlencode(tls)}"} if tls else {}),
        },
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "handle_error", withhold_values)
    event.listen(engine.sync_engine, "connect", _keep_alive)
    if are_lent:
        dialect = cast(Any, engine.dialect)
        dialect.setup_asyncpg_json_codec = dialect.setup_asyncpg_jsonb_codec = _set_up_nothing
        event.listen(engine.sync_engine, "begin", _set_limits)
    event.listen(engine.sync_engine, "checkout", _refuse_broken)
    return engine


async def _set_up_nothing(_connection: object) -> None:
    """Look up no types: JSON is text in our columns, and a session may be another's behind the look."""


def _set_limits(connection: Connection) -> None:
    connection.exec_driver_sql(_SET_LIMITS)


def _is_lent(connection: Connection) -> bool:
    """Whether the session is another's than the one that was connected to: a pooler tells a number of its own."""
    connected = cast(Any, connection.connection.driver_connection).get_server_pid()
    return connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one() != connected


async def _fetch_lent(connection: Any, text: str, values: Sequence[object]) -> Sequence[Any]:
    """Run a statement in a transaction of its own, for which a session is lent."""
    async with connection.transaction():
        await connection.execute(_SET_LIMITS)
        return await connection.fetch(text, *values)


def _keep_alive(connection: Any, _record: object) -> None:
    """Have the system look whether the other end of an idle connection is still there."""
    transport = connection.driver_connection._transport  # noqa: SLF001 -- the driver has no option for it
    if (plain := transport.get_extra_info("socket")) is not None:
        keep_asking(plain)


def _refuse_broken(connection: Any, record: Any, _fairy: object) -> None:
    """Have the pool replace a connection whose end has been seen; a new one that breaks at once fails its user."""
    if connection.driver_connection.is_closed() and record.info.get("is_used"):
        record.info.clear()
        raise DisconnectionError
    record.info["is_used"] = True


def _ping(connection: Connection) -> None:
    connection.exec_driver_sql("SELECT 1")
