"""Processes that are killed while documents are embedded and searched: nothing is lost, and no search fails.

No text that has a vector is embedded again. What was on its way to the embedder at a kill may be asked for once more.
"""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, cast

import asyncpg
import httpx2
import pytest

from backend.knowledge.services.embedding_worker import TEXTS_AT_ONCE
from tests.e2e.pair import Pair, lone_backend
from tests.e2e.turns import bare_client, new_base
from tests.examples import of_many
from tests.servers.counted_embedder import CountedEmbedder
from tests.servers.postgres import PostgresServer
from tests.servers.services import Launch
from tests.servers.valkey import ValkeyServer

pytestmark = pytest.mark.whole

DOCUMENTS = 5 * TEXTS_AT_ONCE
MANY_DOCUMENTS = of_many(10_000, few=DOCUMENTS)
SECONDS_OF_CALL = 0.15
PUTS_AT_ONCE = 8
LEASES_OVER = "UPDATE chunk_claim SET leased_until = '2000-01-01 00:00:00'"
LONGEST_WAIT_SECONDS = 600.0
ATTEMPTS = 4
"""How often a call is sent that an embedder answers too late."""


class World:
    """A base that ada owns, documents that are put into it, and searches beside that."""

    def __init__(self, pair: Pair, base_id: str, embedder: CountedEmbedder) -> None:
        self.pair, self.base_id, self.embedder = pair, base_id, embedder

    async def put(self, numbers: Iterable[int]) -> None:
        """Put a document for each number; one that the backend has not acknowledged is put again."""
        waiting = iter(numbers)

        async def put_some(client: httpx2.AsyncClient) -> None:
            for number in waiting:
                while not await self._is_put(client, number):
                    continue

        async with bare_client(self.pair, "ada") as client, asyncio.TaskGroup() as group:
            for _ in range(PUTS_AT_ONCE):
                group.create_task(put_some(client))

    async def _is_put(self, client: httpx2.AsyncClient, number: int) -> bool:
        path = f"/v1/knowledge_bases/{self.base_id}/documents/{number}.txt"
        try:
            answer = await client.put(path, content=text_of(number).encode())
        except httpx2.TransportError:
            return False
        assert answer.status_code in {200, 201, 503}, answer.text
        return answer.status_code != 503

    async def complete(self, count: int) -> None:
        """Wait until all that was put is embedded."""
        with self.pair.http(self.pair.key("ada")) as client:

            def is_complete() -> bool:
                shown = client.get(f"/v1/knowledge_bases/{self.base_id}").json()
                assert shown["chunks"] == count, "what was acknowledged is there"
                return shown["embedded_chunks"] == count

            await asyncio.to_thread(self.pair.backend.wait_until, is_complete, LONGEST_WAIT_SECONDS)

    @asynccontextmanager
    async def searches(self) -> AsyncGenerator["Searches"]:
        """Search all the time while the block runs, over one connection."""
        searches = Searches()
        async with bare_client(self.pair, "ada") as client, asyncio.TaskGroup() as group:
            group.create_task(searches.run(client, f"/v1/knowledge_bases/{self.base_id}/search"))
            try:
                yield searches
            finally:
                searches.ended = True

    async def asked_for(self, count: int) -> None:
        """Wait until so many texts have been on their way to the embedder."""
        await asyncio.to_thread(
            self.embedder.wait_until, lambda: self.embedder.asked().total() >= count, LONGEST_WAIT_SECONDS
        )

    def repeated(self, count: int) -> int:
        """Return how many texts were asked for again, having checked that none is missing."""
        asked = self.embedder.asked()
        wanted = {text_of(number) for number in range(count)}
        assert wanted <= asked.keys()
        return sum(asked[text] - 1 for text in wanted)


class Searches:
    """One search after the other; `statuses` counts their answers."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.ended = False
        self._answered = asyncio.Event()

    async def run(self, client: httpx2.AsyncClient, path: str) -> None:
        while not self.ended:
            answer = await client.post(path, json={"query": f"wine of the barrel {self.statuses.total()}"})
            self.statuses[answer.status_code] += 1
            self._answered.set()
            assert answer.status_code != 200 or answer.json()["data"], "words alone find something"

    async def more(self, count: int) -> None:
        """Wait until so many more have been answered."""
        for _ in range(count):
            self._answered.clear()
            await self._answered.wait()


def text_of(number: int) -> str:
    return f"The barrel {number} holds wine of the hill {number % 97}."


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


async def world_of(pair: Pair, embedder: CountedEmbedder) -> World:
    async with bare_client(pair, "ada") as client:
        return World(pair, await new_base(client, "Cellar"), embedder)


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
