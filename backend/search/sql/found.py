"""The values of the search index; those with columns of numbers are in `word_postings`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from backend.search.domain.chunks import Range


class Found(NamedTuple):
    """A chunk that was found, before its text is read."""

    base_id: str
    number: int
    score: float


class FoundByWords(NamedTuple):
    """Chunks that have words of a question, and the score that no chunk could exceed."""

    chunks: list[Found]
    greatest_score: float


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


class PackedSegment(NamedTuple):
    """The packed index of some chunks: pages of postings, divided by the first `bits` bits of the hashes of words.

    `lengths` holds the index tokens of each chunk as two bytes, `token_count` their sum.
    """

    bits: int
    lengths: bytes
    pages: Mapping[int, bytes]
    token_count: int
