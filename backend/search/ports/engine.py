"""The ports of a search engine beside the database: it holds the words of chunks, and nothing that it alone knows."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from backend.search.domain.chunks import Allowed, ChunkHit, Found, Range
from backend.search.domain.filters import Filter

EngineWork = TypeVar("EngineWork", contravariant=True)


class EngineChunk(NamedTuple):
    """A chunk as an engine holds it: its number, its length in index tokens, and how often it has each token."""

    number: int
    length: int
    times: Mapping[str, int]


class CurrentBases(NamedTuple):
    """Bases whose chunks the engine was told of, all of them.

    `versions` is another one after each change of a base; `allowed` are the chunks by base that may be found, None is
    all.
    """

    versions: tuple[tuple[str, int], ...]
    chunk_count: int
    token_count: int
    allowed: Allowed = None


class BaseSize(NamedTuple):
    """How many chunks a base has; their numbers are below `end_number`."""

    base_id: str
    chunk_count: int
    end_number: int


class TakenChanges(NamedTuple):
    """Changes of a base that no other process tells the engine of meanwhile: the chunks of these numbers."""

    base_id: str
    ids: tuple[int, ...]
    numbers: tuple[Range, ...]


class ChunkEngine(Protocol):
    """An engine over the words of chunks.

    Every method raises Unavailable while it is away. Retryable.
    """

    async def replace(self, base_id: str, numbers: Range, chunks: Sequence[EngineChunk]) -> None:
        """Hold these chunks, and no others of a range of a base; to do so again changes nothing."""
        ...

    async def count(self, base_ids: Sequence[str], tokens: Sequence[str] = ()) -> int:
        """Return how many chunks of these bases have one of the tokens; without tokens how many there are."""
        ...

    async def find(
        self,
        base_ids: Sequence[str],
        weights: Mapping[str, float],
        limit: int,
        allowed: Allowed,
    ) -> Sequence[Found]:
        """Return the chunks with the greatest sums of the weights of their tokens, greatest first.

        A weight counts the more the more often a chunk has the token, as BM25 has it; lengths are set against one that
        is the same for all bases.
        """
        ...


class EngineLog(Protocol[EngineWork]):
    """What an engine is still to be told, written down with the documents, and what it is told of.

    Every asynchronous method raises Unavailable while the database is away. Retryable.
    """

    def note(self, work: EngineWork, base_id: str, numbers: Range) -> None:
        """Note in the work of a change that these chunks of a base are to be looked at."""
        ...

    async def note_all(self, size: BaseSize) -> None:
        """Note all chunks of a base."""
        ...

    async def read_sizes(self, base_ids: Sequence[str] | None = None) -> Sequence[BaseSize]:
        """Return the sizes of those bases, or of all, that the engine has been told of whole."""
        ...

    async def read_current(self, base_ids: Sequence[str], filters: Filter | None) -> CurrentBases | None:
        """Return what is to be known of bases to search them by the engine; None while it is behind in one."""
        ...

    async def read_hits(self, found: Sequence[Found]) -> Sequence[ChunkHit]:
        """Return the chunks that documents have of those that were found, in any order."""
        ...

    async def take(self) -> TakenChanges | None:
        """Take changes of one base; they are given back by themselves after a minute in which nobody renews them."""
        ...

    async def renew(self, taken: TakenChanges) -> None:
        """Keep taken changes for another minute."""
        ...

    async def read_chunks(self, base_id: str, numbers: Range) -> Sequence[tuple[int, str]]:
        """Return number and text of the first `CHUNKS_AT_ONCE` chunks of a range that documents have."""
        ...

    async def settle(self, taken: TakenChanges, *, is_told: bool) -> None:
        """Note that the engine was told of taken changes; otherwise they can be taken again."""
        ...


class EngineObserver(Protocol):
    """What is counted and logged of an engine."""

    def note_search(self, outcome: str) -> None:
        """Note by what a search was answered: engine, behind (the database, for the engine lacks changes), away."""
        ...

    def note_incomplete(self, base_id: str, held: int, chunks: int) -> None:
        """Note that the engine holds another number of chunks than a base has, and is told of all of them again."""
        ...

    def note_failure(self, reason: str) -> None:
        """Note that the engine cannot be told of changes."""
        ...
