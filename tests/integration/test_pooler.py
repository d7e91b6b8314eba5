"""A pooler that lends each transaction another session of PostgreSQL is found by itself, and nothing is kept in one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import Connection, make_url, text
from sqlalchemy.exc import DBAPIError

from backend.conversations.sql.conversations import SqlConversationStore
from backend.foundation.sql.chosen import check_database_reachable, open_database
from backend.foundation.sql.database import Database
from backend.foundation.sql.statements import Statement
from backend.migrations.migrate import migrate
from shared.errors import TurnRunning, Unavailable
from tests.contract.store_cases import (
    POOL_WAIT_SECONDS,
    append_next,
    make_conversation,
    make_turn,
    sql_stores,
)
from tests.servers.pooler import Pooler

_LIMITS = Statement(
    text("SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS waiting")
)
_FAILING = Statement(text("SELECT 1 / :zero AS nothing"))


@asynccontextmanager
async def _opened(url: str) -> AsyncGenerator[Database]:
    database = open_database(url, pool_wait_seconds=POOL_WAIT_SECONDS)
    try:
        await check_database_reachable(database, url)
        await migrate(database)
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def _pooled(postgres_url: str) -> AsyncGenerator[tuple[Pooler, str]]:
    address = make_url(postgres_url)
    pooler = Pooler(address.port or 0, address.username or "", address.database or "")
    async with pooler.serve() as port:
        yield pooler, address.set(port=port).render_as_string()


def _limits(connection: Connection) -> tuple[str, ...]:
    return tuple(_LIMITS.rows(connection, {})[0].values())


def _kept_statements(connection: Connection) -> int:
    return connection.execute(text("SELECT count(*) FROM pg_prepared_statements")).scalar_one()


async def test_two_processes_behind_a_pooler_write_without_gap_or_double(empty_postgres_url: str) -> None:
    async with _pooled(empty_postgres_url) as (pooler, url), _opened(url) as first, _opened(url) as second:
        stores = [SqlConversationStore(database) for database in (first, second)]
        turns = [sql_stores(database).turns for database in (first, second)]
        for name in ("conv_a", "conv_b"):
            await stores[0].create(make_conversation(name), (), ())
        beginnings = (turns[place % 2].begin(make_turn(0, f"resp_{place}", "conv_b")) for place in range(6))
        outcomes = await asyncio.gather(*beginnings, return_exceptions=True)
        assert outcomes.count(None) == 1
        assert sum(isinstance(outcome, TurnRunning) for outcome in outcomes) == 5

        await asyncio.gather(*(append_next(stores[place % 2]) for place in range(16)))
        assert [entry.position for entry in await stores[1].log("conv_a")] == list(range(16))
        assert pooler.transactions > 40


async def test_limits_hold_in_each_transaction_and_statements_are_kept_in_none(postgres_url: str) -> None:
    async with _pooled(postgres_url) as (_, url), _opened(url) as database:
        for ask in (database.read, database.snapshot, database.write):
            assert await ask(_limits) == ("30s", "10s")
        for _ in range(3):
            row = await database.find(_LIMITS, {})
            assert row is not None
            assert dict(row) == {"statement": "30s", "waiting": "10s"}
        assert {await database.read(_kept_statements) for _ in range(4)} == {0}
    async with _opened(postgres_url) as database:
        assert await database.read(_limits) == ("30s", "10s")
        assert await database.read(_kept_statements) > 0


async def test_a_statement_that_fails_leaves_a_session_that_can_be_lent(postgres_url: str) -> None:
    async with _pooled(postgres_url) as (_, url), _opened(url) as database:
        for _ in range(5):
            with pytest.raises((DBAPIError, Unavailable)):
                await database.find(_FAILING, {"zero": 0})
        assert await database.find(_LIMITS, {}) is not None
        await database.check_writable()


async def test_work_that_is_cancelled_gives_its_session_back(postgres_url: str) -> None:
    def sleep(connection: Connection) -> None:
        connection.execute(text("SELECT pg_sleep(30)"))

    async with _pooled(postgres_url) as (_, url), _opened(url) as database:
        with pytest.raises(Unavailable):
            await database.write(sleep, timeout_seconds=0.3)
        await database.check_writable()
