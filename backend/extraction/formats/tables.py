"""Tables of spreadsheets, presentations and CSV files as text that can be searched row by row.

Each row becomes a paragraph of `column: value` lines. A row is then understood wherever the table is cut into chunks,
and a question that names a column and something in the row finds both words in one chunk. Rows of bare cells under a
header that only the first chunk has would be found without it, and mean nothing to a model.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest

from backend.extraction.domain.blocks import Paragraph
from backend.extraction.formats.text import storable
from shared.errors import PayloadTooLarge

MAX_CELLS = 2_000_000
"""The maximum of a file's cells, empty ones included: they take some 20 seconds to be looked at."""

_ROWS_BEFORE_HEADER = 20
_MIN_HEADED_COLUMNS = 2
_MAX_NAME_CHARACTERS = 200
_NUMERIC = re.compile(r"[-+(]?[\d.,'\s%€$£¥]+[)%€$£¥]?|\d{4}-\d{2}-\d{2}.*")
_LINE_ENDS = re.compile(r"\s*\n\s*")


class CellBudget:
    """Counts the cells of one file."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._left = MAX_CELLS

    def take(self, count: int) -> None:
        """Count cells.

        Raises:
            PayloadTooLarge: the file has more than `MAX_CELLS`.
        """
        self._left -= count
        if self._left < 0:
            raise PayloadTooLarge(f"The {self._what} has more than {MAX_CELLS} cells.", param="body")


def table_rows(rows: Iterable[Sequence[str]]) -> Iterator[Paragraph]:
    """Yield a paragraph for each row that is not empty.

    The header is the first row with at least two filled cells, if it is among the first rows and holds names alone:
    different texts, none of them a number or a date. What stands above it is a title. Without a header, the cells of a
    row stand in one line.
    """
    remaining = iter(rows)
    first = list(islice(remaining, _ROWS_BEFORE_HEADER))
    place = next((place for place, row in enumerate(first) if _count_filled(row) >= _MIN_HEADED_COLUMNS), None)
    names = first[place] if place is not None and _is_header(first[place]) else ()
    above = place + 1 if place is not None and names else 0
    labels = [f"{name}: " if name else "" for name in _cells(names)]
    for row in first[: above - 1] if above else ():
        yield from _plain_row(row)
    for row in chain(first[above:], remaining):
        yield from _name_row(labels, row) if labels else _plain_row(row)
    if names and len(first) == above:
        yield from _plain_row(names)


def _count_filled(row: Sequence[str]) -> int:
    return sum(1 for cell in row if cell.strip())


def _is_header(row: Sequence[str]) -> bool:
    names = [cell.strip() for cell in row if cell.strip()]
    return len(set(names)) == len(names) and not any(
        len(name) > _MAX_NAME_CHARACTERS or _NUMERIC.fullmatch(name) for name in names
    )


def _name_row(labels: Sequence[str], row: Sequence[str]) -> Iterator[Paragraph]:
    lines = [label + cell for label, cell in zip_longest(labels, _cells(row), fillvalue="") if cell]
    if lines:
        yield Paragraph(text="\n".join(lines))


def _plain_row(row: Sequence[str]) -> Iterator[Paragraph]:
    cells = [cell for cell in _cells(row) if cell]
    if cells:
        yield Paragraph(text=" | ".join(cells))


def _cells(row: Sequence[str]) -> list[str]:
    """Return each cell in one line; a printable row, as most are, has nothing in it that must be replaced."""
    if "".join(row).isprintable():
        return [cell.strip() for cell in row]
    return [_LINE_ENDS.sub(" ", storable(cell).strip()) for cell in row]
