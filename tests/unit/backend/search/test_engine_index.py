"""Searches by an engine beside the database: when the database answers instead."""

from collections.abc import Sequence
from typing import Any

from backend.search.domain.chunks import ChunkHit, Range
from backend.search.domain.filters import Comparison, Filter
from backend.search.services.engine_index import MAX_RANGES, EngineIndex
from tests.fakes.chunk_engine import FakeChunkEngine, SeenEngine
from tests.fakes.engine_log import FakeEngineLog

ANY = Comparison(type="ne", key="year", value=2026)


class Asked:
    """What is asked of the index in the database, which finds nothing."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    async def search(
        self, base_ids: Sequence[str], query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        self.queries.append(query)
        return ()

    async def sweep(self, *, is_only_replica: bool) -> None:
        return


class Beside:
    """An index over a base with these texts, of which the engine has been told."""

    def __init__(self, texts: Sequence[str], allowed: Sequence[Range] = ()) -> None:
        self.engine, self.log, self.seen = FakeChunkEngine(), FakeEngineLog(texts, {"kb_a": allowed}), SeenEngine()
        self.database: Any = Asked()
        self.index: EngineIndex[object] = EngineIndex(self.database, self.engine, self.log, self.seen)

    async def told(self) -> "Beside":
        await self.index.sweep(is_only_replica=True)
        return self

    async def found(self, query: str, limit: int = 3, filters: Filter | None = None) -> list[str]:
        return [hit.chunk.text for hit in await self.index.search(["kb_a"], query, limit, filters)]


async def test_it_scores_what_the_engine_found_by_its_text() -> None:
    beside = await Beside(["red wine", "red red ink", "white ink"]).told()
    assert await beside.found("red") == ["red red ink", "red wine"]
    assert beside.database.queries == []


async def test_counts_are_asked_once_for_as_long_as_a_base_stays_the_same() -> None:
    beside = await Beside(["red wine", "white ink"]).told()
    await beside.found("red wine")
    before = beside.engine.calls
    await beside.found("wine red")
    assert beside.engine.calls - before == len(("all chunks", "the search"))


async def test_the_database_answers_where_more_chunks_tie_than_the_engine_returned() -> None:
    beside = await Beside(["red wine"] * 60).told()
    assert await beside.found("wine") == []
    assert beside.database.queries == ["wine"]


async def test_the_database_answers_a_filter_that_allows_too_many_ranges() -> None:
    for count, asked in ((MAX_RANGES, []), (MAX_RANGES + 1, ["red"])):
        beside = await Beside(["red wine", "ink"], [Range(number, number + 1) for number in range(count)]).told()
        assert await beside.found("red", filters=ANY) == ([] if asked else ["red wine"])
        assert beside.database.queries == asked


async def test_the_database_answers_while_the_engine_is_behind_or_holds_too_little() -> None:
    beside = Beside(["red wine"])
    assert await beside.found("red") == []
    await beside.told()
    assert await beside.found("red") == ["red wine"]
    beside.log.is_behind = True
    assert await beside.found("red") == []
    assert beside.seen.outcomes == {"behind": 2, "engine": 1}
    assert beside.seen.incomplete == [("kb_a", 0, 1)]


async def test_an_engine_that_is_away_is_left_alone_for_a_while() -> None:
    beside = await Beside(["red wine"]).told()
    beside.engine.is_away = True
    assert await beside.found("red") == []
    before = beside.engine.calls
    assert await beside.found("wine") == []
    assert beside.engine.calls == before
    assert beside.database.queries == ["red", "wine"]
    assert beside.seen.failures == ["the engine is away"]
