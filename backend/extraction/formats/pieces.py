"""The pieces of a file and the limits of its content, without the code that cuts, which needs NumPy."""

from collections.abc import Sequence
from typing import NamedTuple

from backend.search.domain.index_entries import PackedSegment

IndexedPiece = tuple[Sequence[str], str, int]
"""The headings above a piece, its text, and how many tokens the text has by estimate."""


class ContentLimits(NamedTuple):
    """What a document may hold at most; a larger one is refused."""

    blocks: int = 500_000
    text_characters: int = 20_000_000
    chunks: int = 50_000


class PieceBatch(NamedTuple):
    """Successive pieces of a document with their index."""

    pieces: Sequence[IndexedPiece]
    segment: PackedSegment
