"""A file becomes pieces, within limits of its content.

It runs in a child process, and for a small text in a thread.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from backend.extraction.domain.blocks import Heading, Note, Paragraph, TextBlock
from backend.extraction.domain.chunking import Piece, cut_into_pieces
from backend.extraction.formats.chosen import read_blocks
from backend.extraction.formats.pictures.texts import PictureTexts
from backend.search.domain.chunks import CHUNKS_AT_ONCE
from shared.errors import InvalidRequest, PayloadTooLarge
from shared.models.values import Place
from shared.tokens import estimate_tokens

MAX_NOTES = 50
MAX_NOTE_CHARACTERS = 500

SizedPiece = tuple[Sequence[str], str, int, Place | None]
"""The headings above a piece, its text, how many tokens the text has by estimate, and its place."""


class ContentLimits(NamedTuple):
    """How much a file may hold."""

    blocks: int = 500_000
    text_characters: int = 20_000_000
    chunks: int = 50_000


class CutDocument(NamedTuple):
    """How many pieces a document has, what its text does not hold, and the pieces, made as they are asked for."""

    chunk_count: int
    notes: tuple[str, ...]
    batches: Iterator[Sequence[SizedPiece]]


def cut_file(
    body: bytes,
    media_type: str,
    limits: ContentLimits,
    charset: str | None = None,
    pictures: PictureTexts | None = None,
) -> CutDocument:
    """Read a document, a text by its encoding if that is told, and cut it into pieces.

    Raises:
        PayloadTooLarge: it holds more than `limits` allow, or is too large unpacked.
        InvalidRequest: it is malformed, encrypted, of an uncertain encoding, or without any text; of one whose
            pictures an engine has failed to read that is not known.
    """
    notes, pictures = dict[str, None](), pictures or PictureTexts()
    blocks = list(_within(pictures.put_into(read_blocks(body, media_type, charset)), limits, notes))
    if not blocks and not pictures.has_failed:
        said = " ".join(("The document has no text in it; it must hold some.", *_short(notes)))
        raise InvalidRequest(said, param="body")
    pieces = cut_into_pieces(blocks)
    _check_count(len(pieces), limits.chunks, "pieces")
    return CutDocument(len(pieces), _short(notes), _batches(pieces))


def _short(notes: Iterable[str]) -> tuple[str, ...]:
    """Keep the first notes where a document has many."""
    said = [note[:MAX_NOTE_CHARACTERS] for note in notes]
    more = (f"Further notes: {len(said) - MAX_NOTES}.",) if len(said) > MAX_NOTES else ()
    return (*said[:MAX_NOTES], *more)


def _within(
    blocks: Iterable[TextBlock], limits: ContentLimits, notes: dict[str, None]
) -> Iterator[Heading | Paragraph]:
    """Yield the blocks that have text, and collect the notes, each once.

    A document that holds too much is refused before the rest of it is read.
    """
    count = characters = 0
    for block in blocks:
        if isinstance(block, Note):
            notes[block.text] = None
            continue
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
        yield [(piece.heading_path, piece.text, estimate_tokens(piece.text), piece.place) for piece in some]
