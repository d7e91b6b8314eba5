"""Cuts a document into the pieces that are searched, and joins them again into a text that is read page by page.

A document is cut at headings first, then between paragraphs, then between sentences.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, zip_longest
from math import ceil
from typing import NamedTuple

from backend.extraction.domain.blocks import Heading, Paragraph
from backend.extraction.domain.broken_words import join_broken_words
from backend.extraction.domain.media_types import MARKDOWN, TEXT
from backend.search.domain.chunks import Chunk
from shared.models.values import Place, Value
from shared.tokens import ASCII_CHARACTERS_PER_TOKEN, OTHER_CHARACTERS_PER_TOKEN

MIN_CHUNK_TOKENS = 200
WISHED_CHUNK_TOKENS = 320
MAX_CHUNK_TOKENS = 400
MAX_HEADING_CHARACTERS = 200
"""A longer text is taken as a paragraph, even if its markup makes it a heading."""

_OF_OTHER_ENCODING = re.compile("[\x00\x1b]")
"""UTF-16 and encodings of seven bits, such as ISO-2022-JP, look like UTF-8 but for these."""

_UNITS = ASCII_CHARACTERS_PER_TOKEN
"""Sizes are counted in parts of a token, which unlike estimated tokens add up exactly."""
_UNITS_PER_OTHER = ASCII_CHARACTERS_PER_TOKEN // OTHER_CHARACTERS_PER_TOKEN
_MIN, _WISHED, _MAX = (tokens * _UNITS for tokens in (MIN_CHUNK_TOKENS, WISHED_CHUNK_TOKENS, MAX_CHUNK_TOKENS))
_INSIDE_PARAGRAPH = 100 * _UNITS
"""How much further from the wished size a cut may lie for the sake of falling between paragraphs."""

_MAX_ATOM_TOKENS = 100
_PARAGRAPH_END = "\n\n"
_CLOSERS = "[\"')\\]\u201d\u2019]*+"
_CJK_ENDS = "\u3002\uff01\uff1f\uff1b\u2026"
_CJK_CLOSERS = "[\u201d\u2019\u300d\u300f\uff09\u3011]*+"
_OWN_LINE = r"\s|[-*+•#|>]|\d{1,3}[.)、]"
_SENTENCE = re.compile(
    rf"(?:[^.!?{_CJK_ENDS}\n]++|\n(?!{_OWN_LINE})|[.!?]++(?!{_CLOSERS}\s))*+"
    rf"(?:[.!?]++{_CLOSERS}\s++|[{_CJK_ENDS}]++{_CJK_CLOSERS}\s*+|\n++|\Z)"
)
"""A sentence with the white space behind it. The end of a line ends it only before a list item, a table row or an
indented line, as wrapped text continues in the next. Without backtracking a million dots take no longer than prose."""


class Piece(Value):
    """The text of a future chunk, the headings above it, outermost first, and its place, if the format has places."""

    heading_path: tuple[str, ...]
    text: str
    place: Place | None = None


class _Atom(NamedTuple):
    """A text of a block that is never cut: a sentence, or a part of an overlong one."""

    text: str
    ends_paragraph: bool
    block: Heading | Paragraph


def cut_into_pieces(blocks: Sequence[Heading | Paragraph]) -> tuple[Piece, ...]:
    """Cut a document into pieces of at most 400 estimated tokens.

    A section of more than 400 is cut into pieces of 200 or more where its sentences allow it. All text but
    white space is kept: a heading in the path of the pieces below it, or, if it has no text, as a piece of its own.
    """
    return tuple(
        Piece(heading_path=path, text=_join(atoms), place=_join_places(atoms[0].block, atoms[-1].block))
        for path, paragraphs in _sections([block for block in join_broken_words(blocks) if block.text.strip()])
        for atoms in _cut([atom for paragraph in paragraphs for atom in _atoms(paragraph)])
    )


def readable_text(media_type: str, body: bytes | bytearray, chunks: Sequence[Chunk]) -> str:
    """Return text and Markdown in UTF-8 as stored, others from their chunks, with headings written as in Markdown."""
    if media_type in (TEXT, MARKDOWN):
        with suppress(UnicodeDecodeError):
            text = body.decode("utf-8-sig")
            if not _OF_OTHER_ENCODING.search(text):
                return text
    return join_text(chunks)


def join_text(chunks: Sequence[Chunk], gap: str | None = None) -> str:
    """Join chunks, with headings written as in Markdown where they change; `gap` stands for chunks that are missing."""
    parts = list[str]()
    path, ordinal = (), -1
    for chunk in chunks:
        parts += [gap] if gap is not None and chunk.ordinal != ordinal + 1 else []
        parts += (*_new_headings(path, chunk.heading_path), chunk.text)
        path, ordinal = chunk.heading_path, chunk.ordinal
    return _PARAGRAPH_END.join(parts)


def _new_headings(before: Sequence[str], path: Sequence[str]) -> list[str]:
    same = 0
    while same < min(len(before), len(path)) and before[same] == path[same]:
        same += 1
    return [f"{'#' * (depth + 1)} {path[depth]}" for depth in range(same, len(path))]


def _join_places(first: Heading | Paragraph, last: Heading | Paragraph) -> Place | None:
    """Return the place of a text that begins in one block and ends in another."""
    place = first.place
    if place is None or last.place is None:
        return place
    if isinstance(first, Paragraph) and first.row is not None and isinstance(last, Paragraph):
        return place.model_copy(update={"rows": (first.row, last.row or first.row)})
    return place if last.place.page == place.page else place.model_copy(update={"last_page": last.place.page})


def _sections(
    blocks: Sequence[Heading | Paragraph],
) -> Iterator[tuple[tuple[str, ...], list[Heading | Paragraph]]]:
    """Group paragraphs under the headings above them."""
    above: list[Heading] = []
    paragraphs: list[Heading | Paragraph] = []
    for block, following in zip_longest(blocks, blocks[1:]):
        if isinstance(block, Paragraph) or len(block.text) > MAX_HEADING_CHARACTERS:
            paragraphs.append(block)
            continue
        if paragraphs:
            yield _path(above), paragraphs
        above = [heading for heading in above if heading.level < block.level]
        is_over_nothing = following is None or (isinstance(following, Heading) and following.level <= block.level)
        paragraphs = [block] if is_over_nothing else []
        above += [] if is_over_nothing else [block]
    if paragraphs:
        yield _path(above), paragraphs


def _path(above: Sequence[Heading]) -> tuple[str, ...]:
    return tuple(" ".join(heading.text.split()) for heading in above)


def _atoms(block: Heading | Paragraph) -> Iterator[_Atom]:
    sentences = filter(None, _SENTENCE.findall(block.text.strip("\n").rstrip()))
    parts = [part for sentence in sentences for part in _short(sentence)]
    for part in parts[:-1]:
        yield _Atom(part, ends_paragraph=False, block=block)
    yield _Atom(parts[-1] + _PARAGRAPH_END, ends_paragraph=True, block=block)


def _short(sentence: str) -> Iterator[str]:
    """Cut an overlong sentence at the end of a line or at white space, else between any two characters."""
    longest = _MAX_ATOM_TOKENS * (ASCII_CHARACTERS_PER_TOKEN if sentence.isascii() else OTHER_CHARACTERS_PER_TOKEN)
    start = 0
    while len(sentence) - start > longest:
        end = _last_break(sentence, start + 1, start + longest) + 1 or start + longest
        yield sentence[start:end]
        start = end
    yield sentence[start:]


def _last_break(text: str, first: int, behind: int) -> int:
    """Return the offset of the last line feed in the second half, else of the last white space; -1 without any."""
    line = text.rfind("\n", (first + behind) // 2, behind)
    return line if line >= 0 else max(text.rfind(" ", first, behind), text.rfind("\n", first, behind))


def _cut(atoms: Sequence[_Atom]) -> Iterator[Sequence[_Atom]]:
    """Group atoms to texts of about equal size."""
    ends = [0, *accumulate(_units(atom.text) for atom in atoms)]
    start = 0
    while start < len(atoms):
        end = _best_end(atoms, ends, start)
        yield atoms[start:end]
        start = end


def _join(atoms: Sequence[_Atom]) -> str:
    return "".join(atom.text for atom in atoms).strip("\n").rstrip()


def _best_end(atoms: Sequence[_Atom], ends: Sequence[int], start: int) -> int:
    rest = ends[-1] - ends[start]
    if rest <= _MAX:
        return len(atoms)
    wished = rest / ceil(rest / _WISHED)

    def cost(end: int) -> float:
        size = ends[end] - ends[start]
        too_small = max(0, _MIN - size) + max(0, _MIN - (rest - size))
        return abs(size - wished) + too_small * _MAX + (0 if atoms[end - 1].ends_paragraph else _INSIDE_PARAGRAPH)

    fitting = range(start + 1, bisect_right(ends, ends[start] + _MAX))
    return min(fitting, key=cost)


def _units(text: str) -> int:
    ascii_count = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return ascii_count + _UNITS_PER_OTHER * (len(text) - ascii_count)
