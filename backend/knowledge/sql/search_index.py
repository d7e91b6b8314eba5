"""The values of the search index; those with columns of numbers are in `word_postings`."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from sqlalchemy import Connection


class Found(NamedTuple):
    """A chunk that was found, before its text is read."""

    base_id: str
    number: int
    score: float


class FoundByWords(NamedTuple):
    """Chunks that have words of a question, and the score that no chunk could exceed."""

    chunks: list[Found]
    greatest_score: float


class Range(NamedTuple):
    """Numbers of chunks of a base, from the first to before the end."""

    first_number: int
    end_number: int


Allowed = Mapping[str, Sequence[Range]] | None
"""By base the chunks that may be found; None allows all."""


class IndexSegment(NamedTuple):
    """A segment in the database, without its pages; `size` is how many chunks it had when it was written.

    One that is visible never changes, and its row names its content: `touched_at` tells it from another of the same id,
    which a database may give again after it was brought back from a backup.
    """

    id: int
    base_id: str
    first_number: int
    end_number: int
    size: int
    bits: int
    touched_at: datetime


class SearchIndex(Protocol):
    """Finds chunks by their index tokens, in the transaction of the caller."""

    def search(
        self,
        connection: Connection,
        base_ids: Sequence[str],
        tokens: Sequence[str],
        limit: int,
        allowed: Allowed = None,
    ) -> FoundByWords:
        """Return the best chunks in any order: `limit` of them, where so many match.

        More are returned that tie with the last. Unseen chunks are not found and do not change scores. With `allowed`
        only chunks of these numbers are found; scores are the same.
        """
        ...

    def chunk_counts(self, connection: Connection, base_id: str, tokens: Sequence[str]) -> Mapping[str, int]:
        """Return in how many chunks of a base each token stands; without tokens of no chunk."""
        ...

    def numbers(self, connection: Connection, base_id: str, tokens: Sequence[str]) -> Mapping[str, Collection[int]]:
        """Return the numbers of the chunks in which each token stands."""
        ...
