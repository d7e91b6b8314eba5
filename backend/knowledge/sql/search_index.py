"""The interface of the search indexes of both databases: index chunks, and find the best ones."""

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
    """Numbers of chunks that no reader sees, though all or some of them are in the index.

    Those of their words up to `counted_to`, by code point, are in the word counts of the index.
    """

    first_number: int
    end_number: int
    counted_to: str


class BaseSize(NamedTuple):
    """The counts of a base: chunks, index tokens, the next free chunk number; and its ranges of unseen chunks."""

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
    """An index in one database. It works in the transaction of the caller, who locks the base for writing."""

    @property
    def chunks_per_step(self) -> int:
        """How many chunks to add or remove in one call."""
        ...

    def open_base(self, connection: Connection, base_id: str) -> None:
        """Create the tables that a new base needs."""
        ...

    def drop_base(self, connection: Connection, base_id: str) -> None:
        """Delete the index of a base."""
        ...

    def add(self, connection: Connection, base_id: str, entries: Sequence[NumberedEntry]) -> None:
        """Index chunks; `count_words` counts their words."""
        ...

    def remove(self, connection: Connection, base_id: str, entries: Sequence[NumberedEntry]) -> None:
        """Remove chunks, given the entries that were added. Removing a chunk that is not indexed changes nothing."""
        ...

    def word_counts(self, entries: Sequence[IndexEntry]) -> WordCounts:
        """Return the word counts of these chunks for `count_words`; empty where the index needs no counts."""
        ...

    def count_words(self, connection: Connection, base_id: str, counts: WordCounts) -> None:
        """Add to the word counts of a base."""
        ...

    def discount_words(self, connection: Connection, base_id: str, counts: WordCounts) -> None:
        """Subtract from the word counts of a base."""
        ...

    def search(self, connection: Connection, base_ids: Sequence[str], tokens: Sequence[str], limit: int) -> list[Found]:
        """Return the best chunks in any order: `limit` of them, where so many match, and all that tie with the last.

        Unseen chunks are not found and do not change scores.
        """
        ...

    def chunk_counts(self, connection: Connection, base_id: str, tokens: Sequence[str]) -> Mapping[str, int]:
        """Return in how many chunks of a base each token stands, unseen ones included; without tokens of no chunk."""
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
