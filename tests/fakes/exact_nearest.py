"""The chunks nearest to a question, found by comparing all of them."""

from collections.abc import Collection, Sequence
from operator import mul

from backend.embeddings.domain import EmbeddedQuery, EmbeddingModel, TextKind, vector_numbers
from backend.embeddings.ports import Embedder
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Filter, matches
from backend.search.domain.fusion import content_rank
from backend.search.ports.index import Retrieval
from shared.errors import BallastError

_ALL_TOKENS = 10**9


class ExactNearest:
    """Implements `backend.search.ports.vectors.NearestChunks` over all chunks that a `Retrieval` reads.

    Chunks are embedded when they are compared; those whose texts are in `unembedded` are left out. `failure` is raised
    while it is set.
    """

    def __init__(self, retrieval: Retrieval, embedder: Embedder) -> None:
        self.failure: BallastError | None = None
        self.unembedded: Collection[str] = ()
        self._retrieval = retrieval
        self._embedder = embedder

    async def nearest(
        self, base_ids: Sequence[str], query: EmbeddedQuery, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Return the nearest chunks."""
        if self.failure is not None:
            raise self.failure
        everything = await self._retrieval.read_all(base_ids, _ALL_TOKENS) or ()
        passing = [hit for hit in everything if filters is None or matches(filters, hit.attributes)]
        hits = [hit for hit in passing if hit.chunk.text not in self.unembedded]
        vectors = await self._embedder.embed([hit.chunk.join_headings for hit in hits], TextKind.PASSAGE)
        asked = vector_numbers(query.vector)
        cosines = [sum(map(mul, asked, vector_numbers(vector))) for vector in vectors]
        scored = [hit.model_copy(update={"score": cosine}) for hit, cosine in zip(hits, cosines, strict=True)]
        return tuple(sorted(scored, key=content_rank)[:limit])

    async def find_lacking(self, hits: Sequence[ChunkHit], model: EmbeddingModel) -> frozenset[str]:
        """Return the chunks that are left out."""
        return frozenset(hit.chunk.id for hit in hits if hit.chunk.text in self.unembedded)
