"""An index whose searches an engine beside the database answers, wherever it holds all that the database does.

The index in the database stays: it answers while the engine is away, lost, or behind the documents, and it alone is
asked which words must not leave. So a search never finds less, and the engine can be lost at any time.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from backend.foundation.services.supervision import is_set_within
from backend.search.domain.bm25 import (
    K1,
    Query,
    Scorer,
    Statistics,
    find_looked_up_terms,
    greatest_score,
    plan,
)
from backend.search.domain.chunks import ALL_NUMBERS, CHUNKS_AT_ONCE, Chunk, ChunkHit, Found, Range
from backend.search.domain.filters import Filter
from backend.search.domain.fusion import content_rank, score_by_words
from backend.search.domain.tokenizing import count_terms, tokenize_indexed
from backend.search.ports.engine import (
    BaseSize,
    ChunkEngine,
    CurrentBases,
    EngineChunk,
    EngineLog,
    EngineObserver,
    TakenChanges,
)
from backend.search.ports.index import IndexProgress, PreparedChunks, SearchIndex, Steps, Work
from shared.errors import Unavailable

LOOK_SECONDS = 10.0
"""How soon changes are looked for that other processes have noted, and an engine that was away is asked again."""

GATHER_SECONDS = 0.2
MAX_RANGES = 500
"""A filter that allows more stretches of chunks than these would be longer than an engine likes to read."""

_MORE_CANDIDATES = 32
"""An engine sets lengths against a fixed one: so many further chunks are scored again by the mean of the bases."""

_KEPT_COUNTS = 20_000

Result = TypeVar("Result")
Terms = Mapping[str, tuple[str, ...]]
_Versions = tuple[tuple[str, int], ...]


class _Asked(NamedTuple):
    """A search by the engine: the words that count, in how many chunks each is, and what no score exceeds."""

    terms: Terms
    query: Query
    statistics: Statistics
    limit: int


class EngineIndex(Generic[Work]):
    """A `SearchIndex` over an index in the database and an engine."""

    def __init__(
        self, built_in: SearchIndex[Work], engine: ChunkEngine, log: EngineLog[Work], observer: EngineObserver
    ) -> None:
        self._built_in = built_in
        self._engine = engine
        self._log = log
        self._observer = observer
        self._has_changes = asyncio.Event()
        self._doubted: set[str] = set()
        self._counts: dict[tuple[_Versions, tuple[str, ...]], int] = {}
        self._asked_again_at = 0.0

    def open(self, work: Work, base_id: str) -> None:
        """Begin the index of a new base; the engine hears of it with its first chunks."""
        self._built_in.open(work, base_id)

    async def prepare(self, chunks: Sequence[Chunk]) -> PreparedChunks[Work]:
        """Make what the database stores; the engine reads the chunks there."""
        prepared = await self._built_in.prepare(chunks)

        def put(work: Work, base_id: str, first_number: int) -> None:
            prepared.put(work, base_id, first_number)
            self._log.note(work, base_id, Range(first_number, first_number + len(chunks)))

        return prepared._replace(put=put)

    def remove(self, base_id: str, numbers: Range) -> Steps[Work]:
        """Remove chunks, and note that the engine is to do so."""
        work = yield
        self._log.note(work, base_id, numbers)
        yield from self._built_in.remove(base_id, numbers)

    def drop(self, base_id: str) -> Steps[Work]:
        """Remove a base, and note that the engine is to do so."""
        work = yield
        self._log.note(work, base_id, ALL_NUMBERS)
        yield from self._built_in.drop(base_id)

    async def progress(self, base_ids: Sequence[str]) -> Mapping[str, IndexProgress]:
        """Tell how far the database has indexed bases: what it holds is found, whatever the engine holds."""
        return await self._built_in.progress(base_ids)

    def note_change(self, base_id: str) -> None:
        """Have the engine told soon."""
        self._built_in.note_change(base_id)
        self._has_changes.set()

    async def search(
        self, base_ids: Sequence[str], query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Return the best chunks, best first, by the engine where it holds all chunks of these bases."""
        terms = find_looked_up_terms(query)
        if base_ids and terms and limit > 0 and asyncio.get_running_loop().time() >= self._asked_again_at:
            current = await self._log.read_current(base_ids, filters)
            try:
                hits = None if current is None else await self._search_engine(current, terms, limit)
            except Unavailable as away:
                self._asked_again_at = asyncio.get_running_loop().time() + LOOK_SECONDS
                self._observer.note_failure(str(away))
                hits = None
            self._observer.note_search("behind" if hits is None else "engine")
            if hits is not None:
                return hits
        return await self._built_in.search(base_ids, query, limit, filters)

    async def sweep(self, *, is_only_replica: bool) -> None:
        """Sweep the database, and tell the engine of bases of which it holds too little or too much."""
        await self._built_in.sweep(is_only_replica=is_only_replica)
        await self._attempt_follow(None)

    async def tidy(self, seconds: float = 0.0) -> None:
        """Tidy the database, and tell the engine what was noted; an engine that is away is no failure."""
        await _run_all([self._built_in.tidy(seconds), self._follow_within(seconds)])

    async def reindex(self) -> AsyncIterator[IndexProgress]:
        """Index the database anew, then tell the engine of all chunks."""
        async for progress in self._built_in.reindex():
            yield progress
        sizes = await self._log.read_sizes()
        for size in sizes:
            await self._log.note_all(size)
        told, chunks = 0, sum(size.chunk_count for size in sizes)
        while taken := await self._log.take():
            told = min(told + await self._tell(taken), chunks)
            yield IndexProgress(told, chunks)
        if chunks:
            yield IndexProgress(chunks, chunks)

    async def _search_engine(self, current: CurrentBases, terms: Terms, limit: int) -> tuple[ChunkHit, ...] | None:
        """Search by the engine; None where it does not hold what the database does, or cannot tell ties apart."""
        if sum(map(len, (current.allowed or {}).values())) > MAX_RANGES:
            return None
        counts = await self._count(current, terms)
        if counts is None:
            self._doubt(current)
            return None
        statistics = Statistics(chunk_count=current.chunk_count, token_count=current.token_count, chunk_counts=counts)
        asked = _Asked(terms, plan(terms, statistics), statistics, limit)
        if not asked.query.terms:
            return ()
        weights = {token: statistics.idf(term) * (K1 + 1) for term in asked.query.terms for token in terms[term]}
        wanted = limit + limit // 4 + _MORE_CANDIDATES
        base_ids = [base_id for base_id, _ in current.versions]
        found = await self._engine.find(base_ids, weights, wanted, current.allowed)
        hits = await self._log.read_hits(found)
        if len(hits) < len(found):
            self._doubt(current)
            return None
        if len(found) == wanted and _may_tie(found, limit):
            return None
        return await asyncio.to_thread(_rank, hits, asked)

    async def _count(self, current: CurrentBases, terms: Terms) -> dict[str, int] | None:
        """Count the chunks that have each term; None where the engine does not hold as many as the bases have.

        Counts are kept for as long as the bases do not change.
        """
        base_ids = [base_id for base_id, _ in current.versions]
        kept = {forms: self._counts.get((current.versions, forms)) for forms in terms.values()}
        missing = [forms for forms, count in kept.items() if count is None]
        found = await _run_all([self._engine.count(base_ids, forms) for forms in [(), *missing]])
        if found[0] != current.chunk_count:
            return None
        if len(self._counts) > _KEPT_COUNTS:
            self._counts.clear()
        fresh = dict(zip(missing, found[1:], strict=True))
        self._counts |= {(current.versions, forms): count for forms, count in fresh.items()}
        return {term: fresh.get(forms) or kept[forms] or 0 for term, forms in terms.items()}

    def _doubt(self, current: CurrentBases) -> None:
        self._doubted.update(base_id for base_id, _ in current.versions)
        self._has_changes.set()

    async def _follow_within(self, seconds: float) -> None:
        end = asyncio.get_running_loop().time() + seconds
        while True:
            self._has_changes.clear()
            doubted, self._doubted = self._doubted, set()
            await self._attempt_follow(sorted(doubted))
            if asyncio.get_running_loop().time() >= end:
                return
            if await is_set_within(self._has_changes, LOOK_SECONDS):
                await asyncio.sleep(GATHER_SECONDS)

    async def _attempt_follow(self, doubted: Sequence[str] | None) -> None:
        """Compare the engine with these bases, or with all, and tell it what is noted."""
        try:
            for size in await self._log.read_sizes(doubted) if doubted != [] else ():
                await self._compare(size)
            while taken := await self._log.take():
                await self._tell(taken)
        except Unavailable as away:
            self._observer.note_failure(str(away))

    async def _compare(self, size: BaseSize) -> None:
        held = await self._engine.count([size.base_id])
        if held != size.chunk_count:
            self._observer.note_incomplete(size.base_id, held, size.chunk_count)
            await self._log.note_all(size)

    async def _tell(self, taken: TakenChanges) -> int:
        """Make the engine hold of each range what documents have of it; return how many chunks that are."""
        told, is_told = 0, False
        try:
            for numbers in _join(taken.numbers):
                reached = numbers.first_number
                while reached < numbers.end_number:
                    chunks = await self._log.read_chunks(taken.base_id, numbers._replace(first_number=reached))
                    end = numbers.end_number if len(chunks) < CHUNKS_AT_ONCE else chunks[-1][0] + 1
                    read = await asyncio.to_thread(_read_words, chunks)
                    await self._engine.replace(taken.base_id, Range(reached, end), read)
                    await self._log.renew(taken)
                    reached, told = end, told + len(chunks)
            is_told = True
        finally:
            await self._log.settle(taken, is_told=is_told)
        return told


async def _run_all(steps: Sequence[Coroutine[None, None, Result]]) -> list[Result]:
    """Run steps at the same time; the first error of one ends the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(step) for step in steps]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


def _rank(hits: Sequence[ChunkHit], asked: _Asked) -> tuple[ChunkHit, ...]:
    """Score chunks by their texts, as the index in the database does, and return the best."""
    scorer = Scorer(asked.query, asked.statistics)
    most = greatest_score(asked.terms, asked.statistics)
    scored: list[ChunkHit] = []
    for hit in hits:
        tokens, further = tokenize_indexed(hit.chunk.join_headings)
        times = count_terms(asked.terms, Counter([*tokens, *further]))
        if any(term in times for term in asked.query.leading):
            scored.append(hit.model_copy(update={"score": scorer.score(times, len(tokens))}))
    return tuple(score_by_words(hit, most) for hit in sorted(scored, key=content_rank)[: asked.limit])


def _may_tie(found: Sequence[Found], limit: int) -> bool:
    """Tell whether chunks that were not returned may be as good as the last of the best."""
    return found[-1].score >= found[limit - 1].score


def _read_words(chunks: Sequence[tuple[int, str]]) -> list[EngineChunk]:
    read: list[EngineChunk] = []
    for number, text in chunks:
        tokens, further = tokenize_indexed(text)
        read.append(EngineChunk(number, len(tokens), Counter([*tokens, *further])))
    return read


def _join(ranges: Sequence[Range]) -> list[Range]:
    """Join ranges that overlap or follow one another."""
    joined: list[Range] = []
    for one in sorted(ranges):
        if joined and one.first_number <= joined[-1].end_number:
            joined[-1] = Range(joined[-1].first_number, max(joined[-1].end_number, one.end_number))
        else:
            joined.append(one)
    return joined
