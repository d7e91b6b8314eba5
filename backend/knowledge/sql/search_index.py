"""What both databases' indexes offer: writing beside the chunks, and finding the best ones."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import orjson
from sqlalchemy import Connection

from backend.knowledge.domain.bm25 import Statistics
from backend.knowledge.domain.index_entries import IndexEntry


class NumberedEntry(NamedTuple):
    """An index entry and the number of its chunk in its base."""

    number: int
    entry: IndexEntry


class UnseenRange(NamedTuple):
    """Numbers of chunks that no reader sees, though the index has them or some of them.

    Of their words those up to `counted_to`, by code point, are in the index's counts.
    """

    first_number: int
    end_number: int
    counted_to: str


class BaseSize(NamedTuple):
    """What a base counts: chunks, index tokens, and numbers given so far; and what is in the index unseen."""

    base_id: str
    chunk_count: int
    index_token_count: int
    next_chunk_number: int
    unseen: tuple[UnseenRange, ...]


WordCounts = Sequence[tuple[str, int]]
"""Words, ordered by code point, with the number of chunks that have them."""


class Found(NamedTuple):
    """A chunk that was found, before its text is read."""

    base_id: str
    number: int
    score: float


class SearchIndex(Protocol):
    """An index in one database. All is done in the caller's transaction, which holds the base's row when writing."""

    @property
    def chunks_per_step(self) -> int:
        """How many chunks are best written, or taken out, at one time."""
        ...

    def open_base(self, connection: Connection, base_id: str) -> None:
        """Make what a new base needs."""
        ...

    def drop_base(self, connection: Connection, base_id: str) -> None:
        """Forget a base."""
        ...

    def add(self, connection: Connection, base_id: str, entries: Sequence[NumberedEntry]) -> None:
        """Index chunks; their words are counted apart."""
        ...

    def remove(self, connection: Connection, base_id: str, entries: Sequence[NumberedEntry]) -> None:
        """Take chunks out; the entries are those that were added. Taking out what is not there changes nothing."""
        ...

    def word_counts(self, entries: Sequence[IndexEntry]) -> WordCounts:
        """Return what is to be counted of these chunks, nothing where the index counts by itself."""
        ...

    def count_words(self, connection: Connection, base_id: str, counts: WordCounts) -> None:
        """Count chunks that have these words."""
        ...

    def discount_words(self, connection: Connection, base_id: str, counts: WordCounts) -> None:
        """Count these chunks no more."""
        ...

    def search(self, connection: Connection, base_ids: Sequence[str], tokens: Sequence[str], limit: int) -> list[Found]:
        """Find the best chunks in any order, at least `limit` and all that tie with the last, where there are.

        Unseen chunks are not found, and count nowhere.
        """
        ...

    def chunk_counts(self, connection: Connection, base_id: str, tokens: Sequence[str]) -> Mapping[str, int]:
        """Return in how many chunks of a base each token stands, unseen ones included; none where it is in none."""
        ...

    def numbers(self, connection: Connection, base_id: str, tokens: Sequence[str]) -> Mapping[str, Collection[int]]:
        """Return the numbers of the chunks in which each token stands, unseen ones included."""
        ...


def base_size(row: tuple[str, int, int, int, str | None]) -> BaseSize:
    """Read a base's size from a row that ends with its ranges of unseen chunks as JSON, or None."""
    base_id, chunk_count, index_token_count, next_chunk_number, unseen = row
    ranges = tuple(UnseenRange(*found) for found in orjson.loads(unseen or "[]"))
    return BaseSize(base_id, chunk_count, index_token_count, next_chunk_number, ranges)


def statistics_of(sizes: Sequence[BaseSize], chunk_counts: Mapping[str, int]) -> Statistics:
    """Count over all searched bases together; `chunk_counts` says in how many of their chunks a word stands."""
    return Statistics(
        chunk_count=sum(size.chunk_count for size in sizes),
        token_count=sum(size.index_token_count for size in sizes),
        chunk_counts=chunk_counts,
    )
