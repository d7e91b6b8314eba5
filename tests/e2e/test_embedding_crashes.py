"""Processes that are killed while documents are embedded and searched: nothing is lost, and no search fails.

No text that has a vector is embedded again. What was on its way to the embedder at a kill may be asked for once more.
"""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import asyncpg
import pytest

from backend.search.services.embedding_worker import TEXTS_AT_ONCE
from tests.e2e.embedded_base import SECONDS_OF_CALL, world_of
from tests.e2e.pair import lone_backend
from tests.examples import of_many
from tests.servers.counted_embedder import CountedEmbedder
from tests.servers.postgres import PostgresServer
from tests.servers.services import Launch
from tests.servers.valkey import ValkeyServer

pytestmark = pytest.mark.whole

DOCUMENTS = 5 * TEXTS_AT_ONCE
MANY_DOCUMENTS = of_many(10_000, few=DOCUMENTS)
LEASES_OVER = "UPDATE chunk_claim SET leased_until = '2000-01-01 00:00:00'"
ATTEMPTS = 4
"""How often a call is sent that an embedder answers too late."""


@pytest.fixture
def embedder(tmp_path: Path) -> Iterator[CountedEmbedder]:
    started = CountedEmbedder(tmp_path / "embedder", seconds_of_call=SECONDS_OF_CALL)
    started.start_and_wait()
    yield started
    started.kill()


@pytest.fixture(params=["sqlite", "postgresql"])
def stores(request: pytest.FixtureRequest) -> dict[str, str]:
    if request.param == "sqlite":
        return {}
    return stores_of(request.getfixturevalue("postgres_server"), request.getfixturevalue("valkey_server"))


def stores_of(postgres: PostgresServer, valkey: ValkeyServer) -> dict[str, str]:
    return {"BACKEND_DATABASE_URL": postgres.url(postgres.new_database()), "BACKEND_REDIS_URL": valkey.url}


async def test_an_embedder_that_is_killed_and_frozen_loses_nothing_and_fails_no_search(
    launch: Launch, tmp_path: Path, embedder: CountedEmbedder, stores: dict[str, str]
) -> None:
    world = await world_of(lone_backend(launch, tmp_path / "backend", **stores, **embedder.settings), embedder)
    await world.put(range(DOCUMENTS // 2))
    async with world.searches() as searches:
        await world.asked_for(TEXTS_AT_ONCE)
        embedder.kill()
        await world.put(range(DOCUMENTS // 2, DOCUMENTS))
        embedder.start()
        await asyncio.to_thread(embedder.wait_ready)
        await world.asked_for(4 * TEXTS_AT_ONCE)
        embedder.freeze()
        await searches.more(5)
        embedder.thaw()
        await world.complete(DOCUMENTS)
    assert searches.statuses.keys() == {200}
    assert world.repeated(DOCUMENTS) <= (1 + ATTEMPTS) * TEXTS_AT_ONCE


async def test_a_backend_that_is_killed_goes_on_where_it_was(
    launch: Launch, tmp_path: Path, embedder: CountedEmbedder
) -> None:
    """On SQLite there is one process, so that nobody answers while it is away; the leases are let run out by hand."""
    pair = lone_backend(launch, tmp_path, **embedder.settings)
    world = await world_of(pair, embedder)
    kills = 0
    await world.put(range(MANY_DOCUMENTS))
    for share in (1, 2):  # of quarters
        await world.asked_for(share * MANY_DOCUMENTS // 4)
        pair.backend.kill()
        kills += 1
        await asyncio.to_thread(end_leases, tmp_path / "var" / "ballast.db")
        pair.backend.start()
        await asyncio.to_thread(pair.backend.wait_ready)
    async with world.searches() as searches:
        await world.complete(MANY_DOCUMENTS)
    assert searches.statuses.keys() == {200}
    assert world.repeated(MANY_DOCUMENTS) <= kills * TEXTS_AT_ONCE


async def test_a_replica_that_is_killed_leaves_its_work_to_the_other(
    launch: Launch,
    tmp_path: Path,
    embedder: CountedEmbedder,
    postgres_server: PostgresServer,
    valkey_server: ValkeyServer,
) -> None:
    stores = stores_of(postgres_server, valkey_server)
    first = lone_backend(launch, tmp_path / "first", **stores, **embedder.settings)
    second = lone_backend(launch, tmp_path / "second", **stores, **embedder.settings)
    world = await world_of(second, embedder)
    await world.put(range(MANY_DOCUMENTS // 4))
    async with world.searches() as searches:
        await world.asked_for(TEXTS_AT_ONCE)
        first.backend.kill()
        await execute(stores["BACKEND_DATABASE_URL"], LEASES_OVER)
        await world.put(range(MANY_DOCUMENTS // 4, MANY_DOCUMENTS))
        await world.complete(MANY_DOCUMENTS)
    assert searches.statuses.keys() == {200}
    # The lease of what the other replica had on its way was ended, too.
    assert world.repeated(MANY_DOCUMENTS) <= 2 * TEXTS_AT_ONCE


async def test_a_database_that_is_killed_costs_no_vector_that_was_made(
    launch: Launch,
    tmp_path: Path,
    embedder: CountedEmbedder,
    postgres_server: PostgresServer,
    valkey_server: ValkeyServer,
) -> None:
    stores = stores_of(postgres_server, valkey_server)
    pair = lone_backend(launch, tmp_path, **stores, **embedder.settings)
    world = await world_of(pair, embedder)
    await world.put(range(DOCUMENTS // 2))
    async with world.searches() as searches:
        for batches in (1, 3):
            await world.asked_for(batches * TEXTS_AT_ONCE)
            postgres_server.kill()
            postgres_server.restart()
            await asyncio.to_thread(pair.backend.wait_ready)
        await world.put(range(DOCUMENTS // 2, DOCUMENTS))
        await world.complete(DOCUMENTS)
    assert searches.statuses.keys() <= {200, 503}
    assert searches.statuses[200] > 0
    assert world.repeated(DOCUMENTS) == 0
    async with world.searches() as searches_after:
        await world.complete(DOCUMENTS)
    assert searches_after.statuses.keys() == {200}


def end_leases(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(LEASES_OVER)


async def execute(url: str, statement: str) -> None:
    connection: Any = await cast(Any, asyncpg).connect(url.replace("+asyncpg", ""))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
