"""The port of the vectors of chunks: which are missing, and which chunks lie nearest to a question."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple, Protocol

from backend.knowledge.domain.filters import Filter
from backend.knowledge.domain.knowledge import ChunkHit
from backend.meaning.domain import EmbeddedQuery, EmbeddingModel, Vector


class TextWithoutVector(NamedTuple):
    """The text of one chunk or of several equal ones; `digest` is the SHA-256 of it in hexadecimal digits."""

    digest: str
    text: str


class EmbeddingProgress(NamedTuple):
    """How many chunks of a base have a vector of the model in use, of how many."""

    embedded_chunks: int
    chunks: int


class ChunkVectors(Protocol):
    """Vectors of the texts of chunks, kept once for equal texts, each for one model.

    Every method raises Unavailable while the database is away. Retryable.
    """

    async def take_unembedded(
        self, model: EmbeddingModel, limit: int, lease: timedelta
    ) -> tuple[TextWithoutVector, ...]:
        """Return texts of chunks that have no vector of this model, and that no other process has taken.

        They are taken for as long as the lease says, in the time of the database. Texts of bases that are not to be
        embedded are left out.
        """
        ...

    async def put(self, model: EmbeddingModel, vectors: Mapping[str, Vector]) -> int:
        """Store vectors by the digests of their texts; return of how many chunks these are the texts."""
        ...

    async def refuse(self, model: EmbeddingModel, digests: Sequence[str]) -> None:
        """Note that the model refuses these texts: they are not taken again for it."""
        ...

    async def nearest(
        self, base_ids: Sequence[str], query: EmbeddedQuery, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Return the chunks nearest to a question, nearest first; `score` is the cosine of the angle, -1 to 1.

        Vectors of other models are not compared. Equal scores are ordered by content, never by arrival.
        """
        ...

    async def progress(self, base_ids: Sequence[str], model: EmbeddingModel) -> Mapping[str, EmbeddingProgress]:
        """Return how far each of these bases has been embedded."""
        ...

    async def sweep(self, model: EmbeddingModel, limit: int) -> int:
        """Delete some vectors of other models, and of texts that no chunk has any more; return how many.

        Those of another model go once every chunk of their base has one of this model.
        """
        ...
