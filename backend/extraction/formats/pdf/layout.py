"""The lines of a page in the order in which they are read: paragraphs joined, rows of tables and columns kept apart."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from backend.extraction.domain.broken_words import BROKEN


class LinePart(NamedTuple):
    """A part of a line without a wide gap in it, and where it stands on the page; y grows upwards."""

    text: str
    left: float
    bottom: float
    right: float
    top: float

    @property
    def width(self) -> float:
        """How long it is."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """How high a line of this type is."""
        return self.top - self.bottom


Row = Sequence[LinePart]
"""Segments beside each other, from left to right."""

_CELL_GAP = "  "
_MIN_COLUMN_ROWS = 4
_MIN_COLUMN_CHARACTERS = 20
"""Fewer rows, or shorter texts on average, are those of a table and are read row by row."""
_OTHER_SIZE = 1.15
_WIDE_LEADING = 1.4
_BESIDE = 0.5
"""The share of its height by which a segment must overlap its neighbour to stand in the same row."""

_CJK_RANGES = "\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60"
_CJK = re.compile(rf"[{_CJK_RANGES}]")
_HYPHENS = "-\u00ad\u2010"
_DASHES = "-\u2013"
_PARTED_WORD = re.compile("(?<=[a-z\u00df-\u00ff])[-\u00ad\u2010]\n\n(?=[a-z\u00df-\u00ff])")
_SOFT_HYPHEN = "\u00ad"
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
_FIRST_WORD = re.compile(rf"[{_CJK_RANGES}]|[^\s{_CJK_RANGES}]+")


def join_segments(segments: Sequence[LinePart]) -> str:
    """Return the text of a page; a blank line stands between its blocks."""
    rows = list(_rows(segments))
    if _could_have_columns(rows):
        rows = [row for band in _bands(rows) for row in _in_reading_order(band)]
    text = "\n\n".join(map(_join_block, _blocks(rows)))
    return _PARTED_WORD.sub(f"-{BROKEN}", text) if any(f"{hyphen}\n\n" in text for hyphen in _HYPHENS) else text


def _rows(segments: Sequence[LinePart]) -> Iterator[Row]:
    row = list(segments[:1])
    for before, segment in pairwise(segments):
        if _stands_beside(before, segment):
            row.append(segment)
            continue
        yield row if len(row) == 1 else sorted(row, key=lambda each: each.left)
        row = [segment]
    if row:
        yield sorted(row, key=lambda each: each.left)


def _could_have_columns(rows: Sequence[Row]) -> bool:
    return sum(1 for row in rows if len(row) > 1) >= _MIN_COLUMN_ROWS


def _stands_beside(one: LinePart, other: LinePart) -> bool:
    if one.right > other.left and other.right > one.left:
        return False
    overlap = min(one.top, other.top) - max(one.bottom, other.bottom)
    return overlap > _BESIDE * min(one.height, other.height)


class _Band(NamedTuple):
    """Rows below each other, between whose segments lies a common strip from `left` to `right`, if there is one."""

    rows: list[Row]
    left: float = float("-inf")
    right: float = float("inf")


def _bands(rows: Sequence[Row]) -> Iterator[_Band]:
    band = _Band([])
    for row in rows:
        left, right = _narrow(band, row)
        if left >= right and band.rows:
            yield band
            band = _Band([])
            left, right = _narrow(band, row)
        band.rows.append(row)
        band = _Band(band.rows, left, right)
    if band.rows:
        yield band


def _narrow(band: _Band, row: Row) -> tuple[float, float]:
    """Return what a row leaves of a band's strip: the widest of the gaps that it has there."""
    edges = [float("-inf"), *(x for each in row for x in (each.left, each.right)), float("inf")]
    gaps = list(zip(edges[::2], edges[1::2], strict=True))
    found = ((max(band.left, left), min(band.right, right)) for left, right in (gaps if band.rows else gaps[1:-1]))
    return max(found, key=lambda gap: gap[1] - gap[0], default=(0.0, 0.0))


def _in_reading_order(band: _Band) -> Sequence[Row]:
    """Return columns of prose one after the other, and rows of a table as they are."""
    sides = [
        [side for row in band.rows if (side := [each for each in row if is_left == (each.right <= band.left)])]
        for is_left in (True, False)
    ]
    if not _could_have_columns(band.rows) or not all(map(_is_prose, sides)):
        return band.rows
    return [row for side in sides for inner in _bands(side) for row in _in_reading_order(inner)]


def _is_prose(rows: Sequence[Row]) -> bool:
    characters = sum(len(each.text) for row in rows for each in row)
    return characters >= _MIN_COLUMN_CHARACTERS * sum(map(len, rows))


def _blocks(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Part rows where the type changes its size, where more space than usual lies between them, and between columns."""
    steps = sorted(step for above, row in pairwise(rows) if (step := _step(above, row)) > 0)
    widest = _WIDE_LEADING * steps[len(steps) // 2] if steps else 0
    block = list[Row]()
    for row in rows:
        if block and _is_parted(block[-1], row, widest):
            yield block
            block = []
        block.append(row)
    if block:
        yield block


def _step(above: Row, row: Row) -> float:
    return above[0].bottom - row[0].bottom


def _is_parted(above: Row, row: Row, widest: float) -> bool:
    smaller, larger = above[0].height, row[0].height
    if smaller > larger:
        smaller, larger = larger, smaller
    step = _step(above, row)
    return larger > _OTHER_SIZE * smaller or step > max(widest, _OTHER_SIZE * larger) or step < -larger


def _join_block(rows: Sequence[Row]) -> str:
    texts = [_CELL_GAP.join(each.text for each in row) for row in rows]
    ends = _lines_ends(rows, is_turned=RIGHT_TO_LEFT.search(texts[0]) is not None)
    parts = texts[:1]
    end = max(ends)
    for place, (above, row) in enumerate(pairwise(rows), 1):
        is_prose = len(above) == len(row) == 1
        before, text = texts[place - 1], texts[place]
        if is_prose and before[-1] in _HYPHENS and _goes_on(before, text):
            parts[-1] = parts[-1][:-1]
            parts += [] if before[-1] == _SOFT_HYPHEN else ["-", BROKEN]
        elif is_prose and before[-1] in _DASHES and before[-2:-1].isdecimal() and text[0].isdecimal():
            pass
        elif is_prose and ends[place - 1] + _first_word_width(row[0]) > end:
            parts += [] if _CJK.match(before[-1]) and _CJK.match(text) else [" "]
        else:
            parts.append("\n")
        parts.append(text)
    return "".join(parts)


def _goes_on(before: str, text: str) -> bool:
    return before[-2:-1].isalpha() and text[0].isalnum()


def _lines_ends(rows: Sequence[Row], *, is_turned: bool) -> list[float]:
    """Return where the rows end, in the direction of their script."""
    return [-row[0].left if is_turned else row[-1].right for row in rows]


def _first_word_width(segment: LinePart) -> float:
    """Estimate how wide the first word of a line is with a space, which had no place in the line above if it wraps."""
    word = _FIRST_WORD.match(segment.text)
    return segment.width * (word.end() + 1 if word else 1) / len(segment.text)
