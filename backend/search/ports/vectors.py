"""The port of the vectors of chunks: which are missing, and which chunks lie nearest to a question."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple, Protocol

from backend.embeddings.domain import EmbeddedQuery, EmbeddingModel, Vector
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Filter


class ChunkPlace(NamedTuple):
    """Which chunk a vector is for: that of this number, among those of a base that one model embeds."""

    space_id: int
    edition_id: str
    number: int


class TextWithoutVector(NamedTuple):
    """The text of one chunk or of several equal ones; `digest` is the SHA-256 of it in hexadecimal digits."""

    digest: str
    text: str
    places: tuple[ChunkPlace, ...]


class EmbeddingProgress(NamedTuple):
    """How many chunks of a base have a vector of the model in use, of how many, and how many wait for one.

    `waiting_tokens` is how many index tokens those have, by the mean of the base, and `seconds_left` how long they will
    take, as far as that is known.
    """

    embedded_chunks: int
    chunks: int
    waiting_chunks: int = 0
    waiting_tokens: int = 0
    seconds_left: int | None = None


class NearestChunks(Protocol):
    """What finds the chunks whose vectors lie nearest to a question; every `ChunkVectors` is one."""

    async def nearest(
        self, base_ids: Sequence[str], query: EmbeddedQuery, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Return the chunks nearest to a question, nearest first; `score` is the cosine of the angle, -1 to 1.

        Vectors of other models are not compared. Equal scores are ordered by content, never by arrival. Scores depend
        on nothing but the named bases. Where the database can hold no vectors, there are none.

        Raises:
            Unavailable: the database is away. Retryable.
        """
        ...

    async def find_lacking(self, hits: Sequence[ChunkHit], model: EmbeddingModel) -> frozenset[str]:
        """Return the ids of those of these chunks that have no vector of a model.

        Raises:
            Unavailable: the database is away. Retryable.
        """
        ...


class ChunkVectors(NearestChunks, Protocol):
    """Vectors of the texts of chunks, made once for equal texts of a base, each for one model.

    What is taken, made and shown of a base depends on nothing that another base holds.

    Every method raises Unavailable while the database is away. Retryable.
    """

    async def find_missing(self) -> str | None:
        """Return what the database lacks to hold vectors, without which search is by words alone; None is nothing."""
        ...

    async def discover(self, model: EmbeddingModel, base_id: str | None = None) -> int:
        """Note which documents, of one base or of all, are to be embedded by this model; return how many are new."""
        ...

    async def models_of(self, base_id: str) -> Sequence[EmbeddingModel]:
        """Return the models that a base is embedded by: one, or the former one as well while a new one takes over."""
        ...

    async def take_unembedded(self, model: EmbeddingModel, limit: int, lease: timedelta) -> "TakenTexts":
        """Take texts of chunks that have no vector of this model, and that no other process has taken.

        They are of one base: bases take turns, and the one that was searched last has every second turn. Documents take
        turns as well, those with least embedded first, and each batch has texts of the oldest. They are taken
        for as long as the lease says, in the time of the database. Texts of bases that are not to be embedded are left
        out. Where an equal text of the same base has a vector of this model already,
        that one is used.
        """
        ...

    async def put(self, model: EmbeddingModel, vectors: Sequence[tuple[TextWithoutVector, Vector]]) -> int:
        """Store vectors of taken texts; return of how many chunks these are the texts."""
        ...

    async def refuse(self, model: EmbeddingModel, texts: Sequence[TextWithoutVector]) -> None:
        """Note that the model refuses these texts: they are not taken again for it."""
        ...

    async def give_back(self, texts: Sequence[TextWithoutVector]) -> None:
        """Let texts that were taken be taken again, by any process."""
        ...

    async def progress(self, base_ids: Sequence[str], model: EmbeddingModel) -> Mapping[str, EmbeddingProgress]:
        """Return how far each of these bases has been embedded; bases that are not to be embedded are left out."""
        ...

    async def count_embedded_chunks(self, document_ids: Sequence[str], model: EmbeddingModel) -> Mapping[str, int]:
        """Return how many chunks of each of these documents have a vector; a document without any may be left out."""
        ...

    async def count_waiting(self, model: EmbeddingModel) -> int:
        """Return how many chunks wait for a vector of this model."""
        ...

    async def sweep(self, model: EmbeddingModel | None, *, keeps_reusable: bool = True) -> int:
        """Delete, in small steps, vectors of bases and chunks that are gone or not to be embedded; return how many.

        Those of chunks that are gone may be those of texts that wait: they go once nothing of their base waits for
        vectors of their model, or at once unless `keeps_reusable`. Those of another model go once every chunk of their
        base has one of this model; without a model they stay.
        """
        ...

    async def upkeep(self) -> None:
        """Make what large bases need to be searched fast."""
        ...


class TakenTexts(NamedTuple):
    """What is to be embedded now; `reused` is how many chunks were given the vector of an equal text instead."""

    texts: tuple[TextWithoutVector, ...]
    reused: int
