"""What both databases' indexes offer: writing beside the chunks, and finding the best ones."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from sqlalchemy import Connection

from backend.domain.bm25 import Statistics
from backend.domain.index_entries import IndexEntry


class NumberedEntry(NamedTuple):
    """An index entry and the number of its chunk in its base."""

    number: int
    entry: IndexEntry


class BaseSize(NamedTuple):
    """What a base counts: chunks, index tokens, and numbers given so far."""

    base_id: str
    chunk_count: int
    index_token_count: int
    next_chunk_number: int


class Found(NamedTuple):
    """A chunk that was found, before its text is read."""

    base_id: str
    number: int
    score: float


class SearchIndex(Protocol):
    """An index in one database. All is done in the caller's transaction, which holds the base's row when writing."""

    def open_base(self, connection: Connection, base_id: str) -> None:
        """Make what a new base needs."""
        ...

    def drop_base(self, connection: Connection, base_id: str) -> None:
        """Forget a base."""
        ...

    def add(self, connection: Connection, base_id: str, entries: Sequence[NumberedEntry]) -> None:
        """Index chunks."""
        ...

    def remove(self, connection: Connection, base_id: str, entries: Sequence[NumberedEntry]) -> None:
        """Take chunks out; the entries are those that were added."""
        ...

    def search(self, connection: Connection, base_ids: Sequence[str], tokens: Sequence[str], limit: int) -> list[Found]:
        """Find the best chunks in any order, at least `limit` and all that tie with the last, where there are."""
        ...


def statistics_of(sizes: Sequence[BaseSize], chunk_counts: Mapping[str, int]) -> Statistics:
    """Count over all searched bases together; `chunk_counts` says in how many of their chunks a word stands."""
    return Statistics(
        chunk_count=sum(size.chunk_count for size in sizes),
        token_count=sum(size.index_token_count for size in sizes),
        chunk_counts=chunk_counts,
    )
