"""A file becomes pieces, within limits of its content.

It runs in a child process, and for a small text in a thread.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from backend.extraction.domain.blocks import Block
from backend.extraction.domain.chunking import Piece, cut_into_pieces
from backend.extraction.formats.chosen import read_blocks
from backend.search.domain.chunks import CHUNKS_AT_ONCE
from shared.errors import InvalidRequest, PayloadTooLarge
from shared.tokens import estimate_tokens

SizedPiece = tuple[Sequence[str], str, int]
"""The headings above a piece, its text, and how many tokens the text has by estimate."""


class ContentLimits(NamedTuple):
    """How much a file may hold."""

    blocks: int = 500_000
    text_characters: int = 20_000_000
    chunks: int = 50_000


def cut_file(body: bytes, media_type: str, limits: ContentLimits) -> tuple[int, Iterator[Sequence[SizedPiece]]]:
    """Return how many pieces a document has, and the pieces, some at a time, made as they are asked for.

    Raises:
        PayloadTooLarge: it holds more than `limits` allow, or is too large unpacked.
        InvalidRequest: it is malformed, encrypted, not UTF-8, or without any text.
    """
    blocks = list(_within(read_blocks(body, media_type), limits))
    if not blocks:
        raise InvalidRequest("The document has no text in it; it must hold some.", param="body")
    pieces = cut_into_pieces(blocks)
    _check_count(len(pieces), limits.chunks, "pieces")
    return len(pieces), _batches(pieces)


def _within(blocks: Iterable[Block], limits: ContentLimits) -> Iterator[Block]:
    """Yield the blocks that have text; a document that holds too much is refused before the rest of it is read."""
    count = characters = 0
    for block in blocks:
        characters += len(block.text)
        _check_count(characters, limits.text_characters, "characters of text")
        if block.text.strip():
            count += 1
            _check_count(count, limits.blocks, "headings and paragraphs")
            yield block


def _check_count(count: int, most: int, of_what: str) -> None:
    if count > most:
        raise PayloadTooLarge(f"The document must have at most {most} {of_what}.", param="body")


def _batches(pieces: Sequence[Piece]) -> Iterator[Sequence[SizedPiece]]:
    for start in range(0, len(pieces), CHUNKS_AT_ONCE):
        some = pieces[start : start + CHUNKS_AT_ONCE]
        yield [(piece.heading_path, piece.text, estimate_tokens(piece.text)) for piece in some]
