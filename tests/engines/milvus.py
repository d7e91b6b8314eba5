"""What only an engine of its own can show of the index beside it; `make test-milvus` runs it on Milvus Lite.

Milvus Lite is one process that scans its rows: it shows that answers are right, and nothing of speed, of replicas, of
partitions, or of how long a change stays unseen.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backend.search.domain.chunks import Range
from backend.search.milvus.chosen import load_milvus
from backend.search.milvus.engine import MilvusEngine
from backend.search.sql.index import SqlSearchIndex
from tests.contract.index_cases import BesideEngine
from tests.contract.store_cases import database_url, migrated
from tests.servers.milvus import MilvusServer


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[MilvusServer]:
    async with MilvusServer(tmp_path / "milvus") as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
async def room(request: pytest.FixtureRequest, tmp_path: Path, server: MilvusServer) -> AsyncIterator[BesideEngine]:
    engine = MilvusEngine(server.url, load_milvus())
    async with migrated(database_url(request.param, request, tmp_path)) as database:
        yield BesideEngine(database, engine)
    await engine.close()


async def fill(room: BesideEngine) -> None:
    await room.open("kb_a")
    await room.put("a", ["red wine of Zürich 2026-10", "white wine, 3.5 litres", "退款需要九天", "軟體 licence"])
    await room.put("b", ["ink, red ink and red paper", "wine " * 300, "…"])


QUERIES = ("red wine", "zurich", "202610", "退款", "软件", "ink paper", "wine litres", "…", "nothing of it")


async def test_it_answers_as_the_database_does(room: BesideEngine) -> None:
    await fill(room)
    built_in = SqlSearchIndex(room.database, room.clock)
    for query in QUERIES:
        assert await room.index.search(["kb_a"], query, 3) == await built_in.search(["kb_a"], query, 3), query
    assert room.seen.outcomes == {"engine": len(QUERIES) - 1}
    assert room.seen.failures == []


async def test_a_killed_engine_costs_no_search_and_is_asked_again(room: BesideEngine, server: MilvusServer) -> None:
    await fill(room)
    before = await room.index.search(["kb_a"], "red wine", 3)
    await server.kill()
    assert await room.index.search(["kb_a"], "red wine", 3) == before
    await room.put("c", ["red glass"])
    assert "red glass" in await room.found("glass")
    await server.start()
    room.start_anew()
    await room.index.sweep(is_only_replica=True)
    room.seen.outcomes.clear()
    assert await room.found("glass") == ["red glass"]
    assert room.seen.outcomes == {"engine": 1}


async def test_an_engine_that_has_lost_all_is_told_again(room: BesideEngine) -> None:
    await fill(room)
    before = await room.index.search(["kb_a"], "red wine", 3)
    await room.engine.replace("kb_a", Range(0, 3), [])
    assert await room.index.search(["kb_a"], "red wine", 3) == before
    await room.index.tidy()
    assert room.seen.incomplete == [("kb_a", 4, 7)]
    room.seen.outcomes.clear()
    assert await room.index.search(["kb_a"], "red wine", 3) == before
    assert room.seen.outcomes == {"engine": 1}
