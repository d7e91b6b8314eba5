"""The contract of search indexes over Milvus Lite, and what only an engine of its own can show; `make test-milvus`.

Milvus Lite is one process that scans its rows: it shows that answers are right, and nothing of speed, of replicas, of
partitions, or of how long a change stays unseen.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backend.search.domain.chunks import Range
from backend.search.milvus.chosen import load_milvus
from backend.search.milvus.engine import MilvusEngine
from backend.search.sql.index import SqlSearchIndex
from shared.errors import Unavailable
from tests.contract.index_rooms import BesideEngine
from tests.contract.store_cases import database_url, migrated
from tests.contract.test_search_index import (  # noqa: F401 -- the contract, over another room
    test_a_document_that_breaks_off_is_in_no_search,
    test_a_filter_leaves_out_hits_and_moves_no_score,
    test_it_finds_after_the_end_of_a_process_what_was_stored_before,
    test_it_finds_what_documents_have_and_nothing_else,
    test_scores_depend_on_the_named_bases_alone,
    test_searches_and_changes_go_on_while_all_is_indexed_anew,
    test_to_remove_or_to_drop_again_changes_nothing,
    test_what_an_ended_process_has_not_indexed_anew_is_found_and_goes_on,
    test_what_is_damaged_is_indexed_anew_from_the_documents,
    test_what_was_made_ready_and_never_put_is_not_found,
)
from tests.house.sources import ROOT
from tests.servers.ports import free_port

PROGRAM = ROOT / "var" / "milvus-lite-environment" / "bin" / "milvus-lite"


class Server:
    """Milvus Lite in a process of its own, which can be killed and started again over what it has stored."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"milvus://127.0.0.1:{self.port}"

    async def start(self) -> None:
        arguments = ("server", "--host", "127.0.0.1", "--port", str(self.port), "--data-dir", str(self._folder))
        self._process = await asyncio.create_subprocess_exec(str(PROGRAM), *arguments, stderr=sys.stderr)
        engine = MilvusEngine(self.url, load_milvus())
        while True:
            try:
                await engine.count([])
                break
            except Unavailable:
                assert self._process.returncode is None
        await engine.close()

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = Server(tmp_path / "milvus")
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


@pytest.fixture(params=["sqlite", "postgresql"])
async def room(request: pytest.FixtureRequest, tmp_path: Path, server: Server) -> AsyncIterator[BesideEngine]:
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


async def test_an_engine_that_is_killed_costs_no_search_and_is_asked_again(room: BesideEngine, server: Server) -> None:
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
