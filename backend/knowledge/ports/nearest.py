"""The port of search by meaning."""

from collections.abc import Sequence
from typing import Protocol

from backend.embeddings.domain import EmbeddedQuery, EmbeddingModel
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Filter


class NearestChunks(Protocol):
    """What finds the chunks whose vectors lie nearest to a question; every `ChunkVectors` is one."""

    async def nearest(
        self, base_ids: Sequence[str], query: EmbeddedQuery, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Return the chunks nearest to a question, nearest first; `score` is the cosine of the angle, -1 to 1.

        Equal scores are ordered by content, never by arrival. Scores depend on nothing but the named bases.

        Raises:
            Unavailable: the database is away. Retryable.
        """
        ...

    async def lacking(self, hits: Sequence[ChunkHit], model: EmbeddingModel) -> frozenset[str]:
        """Return the ids of those of these chunks that have no vector of a model.

        Raises:
            Unavailable: the database is away. Retryable.
        """
        ...
