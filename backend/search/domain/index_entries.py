"""The index entries of chunks."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from backend.search.domain.chunks import Chunk
from backend.search.domain.tokenizing import tokenize


class IndexEntry(NamedTuple):
    """The index tokens of a chunk, in text order. A named tuple, because validating millions takes long."""

    tokens: Sequence[str]

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each token stands in the chunk."""
        return Counter(self.tokens)


class PackedSegment(NamedTuple):
    """The packed index of some chunks: pages of postings, divided by the first `bits` bits of the hashes of words.

    `lengths` holds the index tokens of each chunk as two bytes, `token_count` their sum.
    """

    bits: int
    lengths: bytes
    pages: Mapping[int, bytes]
    token_count: int


class ChunkBatch(NamedTuple):
    """Successive chunks of a document with their index."""

    chunks: Sequence[Chunk]
    segment: PackedSegment


def index_entry(chunk: Chunk) -> IndexEntry:
    """Return the index entry of a chunk, made of its text and the headings above it."""
    return IndexEntry(tokenize(chunk.searched_text))


def index_entries(chunks: Iterable[Chunk]) -> list[IndexEntry]:
    """Return the index entries of a document's chunks, in order; equal tokens share one string in memory."""
    words: dict[str, str] = {}
    return [IndexEntry([words.setdefault(token, token) for token in tokenize(chunk.searched_text)]) for chunk in chunks]
