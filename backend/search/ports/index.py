"""The ports of search by words: the index of chunks, which may be any engine's, and what is read through it.

Documents are the truth and are stored elsewhere; the index follows them.
"""

from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from backend.search.domain.chunks import Chunk, ChunkHit, Range
from backend.search.domain.filters import Filter
from backend.search.domain.shared_runs import WordSequence

Work = TypeVar("Work")
Steps = Generator[None, Work, None]
"""A change in parts: it begins with a `yield`; each gives the work of the next part, which may be done by itself."""


class PreparedChunks(NamedTuple, Generic[Work]):
    """Chunks that are ready to be put into a base, and how many index tokens they have together.

    `put` takes the work, the id of the base and the number of the first chunk; the others follow it.
    """

    chunks: Sequence[Chunk]
    token_count: int
    put: Callable[[Work, str, int], None]


class IndexProgress(NamedTuple):
    """How many chunks of a base the index holds, of how many that its documents have."""

    indexed_chunks: int
    chunks: int


class ChunkSearch(Protocol):
    """Ranked search, by whatever ranks."""

    async def search(
        self, base_ids: Sequence[str], query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Return the best chunks, best first; equal scores are ordered by content, never by arrival.

        With `filters` only chunks of documents whose attributes pass them; scores are the same. Any text is a query;
        one without a word of a chunk finds nothing. Scores are between 0 and 1, and depend on nothing but the query and
        the named bases. A hit shows its document as it is now: chunks that no document has are not found, and an engine
        that keeps numbers alone reads the rest where documents are stored.

        Raises:
            Unavailable: the engine, or what it reads, is away. Retryable.
        """
        ...


class SearchIndex(ChunkSearch, Protocol[Work]):
    """An index of the chunks of bases.

    Whoever stores documents changes the index within the same `Work`, so that what was acknowledged is in both. For an
    index in the database of the documents that is their transaction. An engine of its own writes down in it what is to
    be done, and does it after `note_change`, or where the process ended before in `sweep`; `progress` tells how far
    it is.
    """

    def open(self, work: Work, base_id: str) -> None:
        """Begin the index of a new base."""
        ...

    async def prepare(self, chunks: Sequence[Chunk]) -> PreparedChunks[Work]:
        """Make of successive chunks of a document, at most `CHUNKS_AT_ONCE`, what is to be put, outside of any work.

        What was put is found once a document has the chunks.
        """
        ...

    def remove(self, base_id: str, numbers: Range) -> Steps[Work]:
        """Remove chunks of a document that is gone, or never came to be; to do so again changes nothing."""
        ...

    def drop(self, base_id: str) -> Steps[Work]:
        """Remove all that is left of a base."""
        ...

    async def progress(self, base_ids: Sequence[str]) -> Mapping[str, IndexProgress]:
        """Return how far each of these bases is indexed; bases that are not there are left out.

        Raises:
            Unavailable: the engine, or what it reads, is away. Retryable.
        """
        ...

    def note_change(self, base_id: str) -> None:
        """Note that a change of the documents of a base is stored."""
        ...

    async def sweep(self, *, is_only_replica: bool) -> None:
        """Delete what processes left behind that have ended, and index what they have not.

        Raises:
            Unavailable: the engine, or what it reads, is away. Retryable.
        """
        ...

    def reindex(self) -> AsyncIterator[IndexProgress]:
        """Index all chunks anew, beside searches and changes, and yield how far it is; the end is the last one.

        Raises:
            Unavailable: the engine, or what it reads, is away. Retryable.
        """
        ...

    async def tidy(self, seconds: float = 0.0) -> None:
        """Bring in order what was noted as changed; go on with what is noted within so many seconds.

        Raises:
            Unavailable: the engine, or what it reads, is away. Retryable.
        """
        ...


class Retrieval(ChunkSearch, Protocol):
    """Ranked search, and the reading of chunks without a query."""

    async def read_all(self, base_ids: Sequence[str], token_limit: int) -> tuple[ChunkHit, ...] | None:
        """Return all chunks when they measure at most `token_limit` tokens, else None.

        They are ordered by base id, document name, place in the document; their score is 1.0.
        """
        ...

    async def beginnings(self, document_ids: Sequence[str], limit: int, most: int) -> tuple[ChunkHit, ...]:
        """Return the first `limit` chunks of each of these documents, in their order, and `most` at most.

        Their score is 0.0.
        """
        ...


class WordRuns(Protocol):
    """The look-up whether words come from a base; it reveals nothing else of what the base holds."""

    async def holds_run(self, base_ids: Sequence[str], sequences: Sequence[WordSequence]) -> bool:
        """Tell whether a chunk of these bases, or the headings above it, holds a run of one of the sequences.

        Raises:
            Unavailable: the database is away. Retryable.
        """
        ...
