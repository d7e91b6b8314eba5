"""Searching a vector store."""

from collections.abc import Sequence
from typing import NamedTuple

from backend.identity.domain import Caller
from backend.knowledge.domain.access import require_read
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Filter
from backend.search.domain.fusion import content_rank
from backend.search.ports.index import Retrieval
from backend.vector_stores.services.store_access import find_store


class StoreQuery(NamedTuple):
    """A search: what it asks, how many results it wants, and which files and scores it takes."""

    queries: Sequence[str]
    limit: int
    filters: Filter | None
    min_score: float


class SearchStore:
    """Finds chunks for members who may read them."""

    def __init__(self, store: KnowledgeStore, retrieval: Retrieval) -> None:
        self._store = store
        self._retrieval = retrieval

    async def search(self, caller: Caller, store_id: str, asked: StoreQuery) -> list[ChunkHit]:
        """Return the best chunks, best first; of several queries each chunk has the best score.

        Raises:
            NotFound: the caller is not a member.
            PermissionDenied: the caller is restricted.
        """
        require_read(await find_store(self._store, caller, store_id))
        best: dict[str, ChunkHit] = {}
        for query in asked.queries:
            for hit in await self._retrieval.search([store_id], query, asked.limit, asked.filters):
                known = best.get(hit.chunk.id)
                if hit.score >= asked.min_score and (known is None or hit.score > known.score):
                    best[hit.chunk.id] = hit
        return sorted(best.values(), key=content_rank)[: asked.limit]
