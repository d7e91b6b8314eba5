"""One contract for every `SearchIndex`: it follows the documents, whatever it is and wherever a process ends."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import cast

import pytest

from backend.reindex import reindex_database
from backend.search.domain.chunks import Chunk, Range
from backend.search.domain.filters import Comparison
from backend.search.milvus.chosen import load_milvus
from backend.search.milvus.engine import MilvusEngine
from backend.search.ports.index import IndexProgress
from backend.settings import DatabaseSettings
from shared.environment import read_settings
from shared.errors import Unavailable
from tests.contract.index_cases import BesideEngine, BuiltIn, OfItsOwn, Room
from tests.contract.knowledge_cases import make_document
from tests.contract.store_cases import database_url, migrated
from tests.examples import first_of
from tests.fakes.chunk_engine import FakeChunkEngine
from tests.servers.milvus import MilvusServer

KINDS = ["of_its_own", "sqlite", "postgresql", "engine_sqlite", "engine_postgresql"]
MILVUS_KINDS = ["milvus_sqlite", "milvus_postgresql"]
"""Asked for by `make test-milvus`, which has installed what they need."""


async def reindex_all(room: Room) -> None:
    async for _ in room.index.reindex():
        continue


Change = Callable[[Room], Awaitable[object]]
OLD, NEW = ["red wine", "red ink"], ["white wine", "wine of rice", "red pen"]
CHANGES: dict[str, Change] = {
    "replace": lambda room: room.put("a", NEW),
    "put": lambda room: room.put("b", NEW),
    "delete": lambda room: room.delete("a"),
    "reindex": reindex_all,
    "tidy": lambda room: room.index.tidy(),
}


@asynccontextmanager
async def opened(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Room]:
    engine_kind, _, store = kind.rpartition("_")
    if engine_kind == "of_its":
        yield OfItsOwn()
        return
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(migrated(database_url(store, request, tmp_path)))
        if engine_kind == "milvus":
            server = await stack.enter_async_context(MilvusServer(tmp_path / "milvus"))
            engine = MilvusEngine(server.url, load_milvus())
            stack.push_async_callback(engine.close)
            yield BesideEngine(database, engine)
        else:
            yield BesideEngine(database, FakeChunkEngine()) if engine_kind else BuiltIn(database)


@pytest.fixture(params=MILVUS_KINDS if os.environ.get("TESTS_MILVUS") else KINDS)
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    async with opened(str(request.param), request, tmp_path) as room:
        yield room


async def test_it_finds_what_documents_have_and_nothing_else(room: Room) -> None:
    await room.open("kb_a")
    await room.put("a", ["red wine", "white wine"])
    await room.put("b", ["wine of rice"])
    assert sorted(await room.found("wine")) == ["red wine", "white wine", "wine of rice"]
    await room.put("a", ["red ink"])
    await room.delete("b")
    assert await room.found("wine") == []
    assert await room.found("red") == ["red ink"]
    assert await room.index.progress(["kb_a", "kb_none"]) == {"kb_a": IndexProgress(1, 1)}


async def test_it_finds_after_the_end_of_a_process_what_was_stored_before(room: Room) -> None:
    await room.open("kb_a")
    await room.put("a", ["red wine"], tells=False)
    room.start_anew()
    await room.index.sweep(is_only_replica=True)
    assert await room.found("wine") == ["red wine"]
    await room.index.tidy()
    assert await room.found("wine") == ["red wine"]


async def test_what_was_made_ready_and_never_put_is_not_found(room: Room) -> None:
    await room.open("kb_a")
    _, _, chunks = make_document("a", ["red wine"])
    prepared = await room.index.prepare(chunks)
    assert prepared.token_count > 0
    await room.index.sweep(is_only_replica=True)
    assert await room.found("wine") == []
    assert await room.index.progress(["kb_a"]) == {"kb_a": IndexProgress(0, 0)}


async def test_scores_depend_on_the_named_bases_alone(room: Room) -> None:
    await room.open("kb_a")
    await room.put("a", ["red wine", "white ink"])
    before = await room.index.search(["kb_a"], "red ink", 10)
    await room.open("kb_b")
    await room.put("b", ["red red red", "ink"], "kb_b")
    assert await room.index.search(["kb_a"], "red ink", 10) == before
    assert len(await room.index.search(["kb_a", "kb_b"], "red ink", 10)) == 4


async def test_a_filter_leaves_out_hits_and_moves_no_score(room: Room) -> None:
    await room.open("kb_a")
    await room.put("a", ["red wine"])
    none_has_it = Comparison(type="eq", key="year", value=2026)
    assert await room.index.search(["kb_a"], "wine", 10, none_has_it) == ()
    all_pass = Comparison(type="ne", key="year", value=2026)
    assert await room.index.search(["kb_a"], "wine", 10, all_pass) == await room.index.search(["kb_a"], "wine", 10)


async def test_to_remove_or_to_drop_again_changes_nothing(room: Room) -> None:
    await room.open("kb_a")
    await room.put("a", ["red wine"])
    await room.delete("a")
    await room.put("b", ["white wine"])
    await room.run(room.index.remove("kb_a", Range(0, 1)))
    assert await room.found("wine") == ["white wine"]
    await room.delete_base()
    await room.run(room.index.drop("kb_a"))
    assert await room.found("wine") == []
    assert await room.index.progress(["kb_a"]) == {}


async def test_a_document_that_breaks_off_is_in_no_search(room: Room) -> None:
    await room.open("kb_a")
    document, body, chunks = make_document("a", ["red wine"] * 3)

    async def breaking_off() -> AsyncIterator[Sequence[Chunk]]:
        yield chunks[:1]
        yield chunks[1:2]
        raise Unavailable("the reader is away")

    with pytest.raises(Unavailable):
        await room.documents.put_document(document, body, breaking_off())
    assert await room.found("wine") == []
    assert await room.index.progress(["kb_a"]) == {"kb_a": IndexProgress(0, 0)}


@pytest.mark.parametrize("damage", ["lost", "in parts", "spoilt"])
async def test_what_is_damaged_is_indexed_anew_from_the_documents(room: Room, damage: str) -> None:
    await room.open("kb_a")
    await room.put("a", ["red wine", "red ink"])
    await room.put("b", ["white wine"])
    await room.put("c", ["wine of rice", "…"])
    await room.delete("b")
    await room.index.tidy()
    before = await room.index.search(["kb_a"], "wine", 10)
    await room.damage(damage)
    room.start_anew()
    assert await room.index.search(["kb_a"], "wine", 10) != before
    steps = [step async for step in room.index.reindex()]
    assert steps[-1] == IndexProgress(4, 4)
    assert await room.index.search(["kb_a"], "wine", 10) == before
    await room.delete("a")
    await room.index.tidy()
    assert await room.found("wine") == ["wine of rice"]


async def test_searches_and_changes_go_on_while_all_is_indexed_anew(room: Room) -> None:
    await room.open("kb_a")
    for name in ("a", "b", "c"):
        await room.put(name, [f"red wine {name}"] * 70)
    await room.index.tidy()
    before = await room.index.search(["kb_a"], "wine", 10)
    changed = False
    async for _ in room.index.reindex():
        if not changed:
            assert await room.index.search(["kb_a"], "wine", 10) == before
            await room.delete("a")
            await room.put("d", ["white wine"])
            changed = True
        assert len(await room.found("wine")) == 10
        assert await room.found("a") == []
        assert await room.found("white") == ["white wine"]
    assert changed
    assert await room.index.progress(["kb_a"]) == {"kb_a": IndexProgress(141, 141)}


async def test_what_an_ended_process_has_not_indexed_anew_is_found_and_goes_on(room: Room) -> None:
    await room.open("kb_a")
    await room.put("a", ["red wine", "red ink"])
    before = await room.index.search(["kb_a"], "red", 10)
    steps = room.index.reindex()
    await anext(steps)
    await cast(AsyncGenerator[IndexProgress], steps).aclose()
    room.start_anew()
    assert await room.index.search(["kb_a"], "red", 10) == before
    await room.index.sweep(is_only_replica=True)
    await room.index.tidy()
    assert await room.index.search(["kb_a"], "red", 10) == before


@pytest.mark.parametrize("kind", KINDS[1:])
async def test_a_full_disk_stops_changes_and_no_search(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with opened(kind, request, tmp_path) as room:
        assert isinstance(room, BuiltIn)
        await room.open("kb_a")
        await room.put("a", ["red wine", "red ink"])
        before = await room.index.search(["kb_a"], "red", 10)
        async with room.full_disk():
            with pytest.raises(Unavailable):
                await room.put("b", ["red " + "wine " * 50_000])
            assert await room.index.search(["kb_a"], "red", 10) == before
        await room.put("b", ["red herring"])
        assert len(await room.found("red")) == 3


@pytest.mark.parametrize("change", first_of(*CHANGES))
async def test_wherever_a_process_is_killed_the_old_or_the_new_is_found_and_stays(room: Room, change: str) -> None:
    await room.open("kb_a")
    outcomes = {"put": [OLD, OLD + NEW], "replace": [OLD, NEW], "delete": [OLD, []]}.get(change, [OLD])
    for writes in count():
        await room.put("a", OLD)
        await room.put("b", ["white paper"])
        room.die_behind(writes)
        try:
            await CHANGES[change](room)
            was_killed = False
        except Unavailable:
            was_killed = True
        room.start_anew()
        before = sorted(await room.found("red wine"))
        await room.sweep()
        after = sorted(await room.found("red wine"))
        assert after in map(sorted, outcomes if was_killed else outcomes[-1:])
        # An engine of its own may lack what is stored until it is told.
        assert before == after or (isinstance(room, OfItsOwn) and set(before) < set(after))
        if not was_killed:
            return


async def test_equal_scores_are_ordered_by_content_and_never_by_arrival(room: Room) -> None:
    await room.open("kb_a")
    for number in (3, 1, 2):
        await room.put(f"document {number}", [f"wine {number}{part}" for part in "cab"])
    await room.put("better", ["wine wine"])
    expected = ["wine wine", *(f"wine {number}{part}" for number in (1, 2, 3) for part in "abc")]
    assert await room.found("wine") == expected
    for limit in (2, 5):
        hits = await room.index.search(["kb_a"], "wine", limit)
        assert [hit.chunk.text for hit in hits] == expected[:limit]


async def test_an_index_of_an_earlier_release_is_searched_until_it_is_renewed(room: Room) -> None:
    await room.open("kb_a")
    await room.put("a", ["Müller and wine", "red ink"])
    before = await room.index.search(["kb_a"], "Müller wine", 10)
    assert await room.found("Mueller") == ["Müller and wine"]
    await room.age()
    room.start_anew()
    assert await room.index.search(["kb_a"], "Müller wine", 10) == before
    await room.sweep()
    assert await room.index.search(["kb_a"], "Müller wine", 10) == before
    assert await room.found("Mueller") == ["Müller and wine"]


async def test_the_command_indexes_anew_and_tells_how_far_it_is(
    tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    url = database_url("sqlite", request, tmp_path)
    async with migrated(url) as database:
        room = BuiltIn(database)
        await room.open("kb_a")
        await room.put("a", ["red wine", "red ink"])
        await room.damage("lost")
        await reindex_database(read_settings(DatabaseSettings, {"BACKEND_DATABASE_URL": url}))
        assert capsys.readouterr().out.splitlines()[-1] == "2 of 2 chunks indexed"
        assert len(await room.found("red")) == 2
