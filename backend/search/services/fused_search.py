"""Search by words and by meaning at once."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, NamedTuple

from backend.embeddings.domain import EmbeddingModel
from backend.embeddings.ports import MeaningPorts
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Filter
from backend.search.domain.fusion import FUSION_DEPTH, RERANKED_HITS, Rankings, fuse, reorder
from backend.search.ports.index import ChunkSearch, Retrieval, SearchIndex, WordRuns, Work
from backend.search.ports.vectors import ChunkVectors, NearestChunks
from backend.search.services.embedding_worker import ChangedBases, EmbeddingWorker
from shared.errors import Unavailable


class _Nearest(NamedTuple):
    """The chunks nearest to a question, and whose vectors were compared."""

    hits: tuple[ChunkHit, ...] = ()
    model: EmbeddingModel | None = None


class FusedSearch:
    """A `ChunkSearch` over a search by words, the vectors of chunks, and a reranker.

    Whatever fails beside the search by words costs its share of the ranking, never the search. Without a vector of the
    query, or of any chunk, hits, order and scores are those of the search by words.
    """

    def __init__(self, words: ChunkSearch, vectors: NearestChunks, meaning: MeaningPorts) -> None:
        self._words = words
        self._vectors = vectors
        self._meaning = meaning

    async def search(
        self, base_ids: Sequence[str], query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Return the best chunks, best first; the query is embedded while its words are looked up."""
        if not base_ids or limit <= 0:
            return ()
        try:
            async with asyncio.TaskGroup() as group:
                finding = group.create_task(self._nearest(base_ids, query, filters))
                by_words = await self._words.search(base_ids, query, max(limit, FUSION_DEPTH), filters)
        except ExceptionGroup as failed:
            # The search by words alone raises what callers have to know.
            raise failed.exceptions[0] from None
        nearest = finding.result()
        hits = fuse(await self._rankings(by_words, nearest)) if nearest.hits else by_words
        return (await self._rerank(query, hits))[:limit]

    async def _nearest(self, base_ids: Sequence[str], query: str, filters: Filter | None) -> _Nearest:
        embedded = await self._meaning.questions.vector_of(query, base_ids)
        if embedded is None:
            return _Nearest()
        with suppress(Unavailable):
            return _Nearest(await self._vectors.nearest(base_ids, embedded, FUSION_DEPTH, filters), embedded.model)
        return _Nearest()

    async def _rankings(self, by_words: Sequence[ChunkHit], nearest: _Nearest) -> Rankings:
        """Find out which of the chunks found by words are not among the nearest because they have no vector."""
        near = {hit.chunk.id for hit in nearest.hits}
        others = [hit for hit in by_words[:FUSION_DEPTH] if hit.chunk.id not in near]
        rankings = Rankings(by_words, nearest.hits)
        with suppress(Unavailable):
            if others and nearest.model is not None:
                return rankings._replace(lacking=await self._vectors.find_lacking(others, nearest.model))
        return rankings

    async def _rerank(self, query: str, hits: tuple[ChunkHit, ...]) -> tuple[ChunkHit, ...]:
        texts = [hit.chunk.text for hit in hits[:RERANKED_HITS]]
        preferences = await self._meaning.reranker.scores(query, texts) if texts else None
        return hits if preferences is None else reorder(hits, preferences)


@dataclass(frozen=True)
class SearchServices(Generic[Work]):
    """Search over one index.

    `words` ranks by words alone, `ranking` by all that the operator has set up.
    """

    index: SearchIndex[Work]
    words: Retrieval
    ranking: ChunkSearch
    runs: WordRuns
    vectors: ChunkVectors
    embedding: EmbeddingWorker
    changed: ChangedBases

    def note_change(self, base_id: str) -> None:
        """Note that a change of the documents of a base, or of its permission to be embedded, is stored."""
        self.index.note_change(base_id)
        self.changed.note(base_id)

    async def let_changes_wait(self) -> None:
        """Let what was noted wait for a process that embeds, which looks for changes of others rarely; this one ends.

        Raises:
            Unavailable: the database is away.
        """
        for base_id in sorted(self.changed.take()):
            for model in await self.vectors.models_of(base_id):
                await self.vectors.discover(model, base_id)
