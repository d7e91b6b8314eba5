"""Tables of spreadsheets, presentations and CSV files as text that can be searched row by row.

Each row becomes a paragraph of `column: value` lines. A row is then understood wherever the table is cut into chunks,
and a question that names a column and something in the row finds both words in one chunk. Rows of bare cells under a
header that only the first chunk has would be found without it, and mean nothing to a model.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat, zip_longest

from backend.extraction.domain.blocks import Paragraph
from backend.extraction.formats.text import storable
from shared.errors import PayloadTooLarge
from shared.models.values import Place

MAX_CELLS = 2_000_000
"""The maximum of a file's cells, empty ones included: they take some 20 seconds to be looked at."""

_ROWS_BEFORE_HEADER = 20
_MIN_HEADED_COLUMNS = 2
MAX_NAME_CHARACTERS = 200
_NUMERIC = re.compile(r"[-+(]?[\d.,'\s%€$£¥]+[)%€$£¥]?|\d{4}-\d{2}-\d{2}.*|\d{1,2}:\d{2}(?::\d{2})?")
_MOMENT = re.compile(r"(?:19|20)\d{2}|\d{4}-\d{2}-\d{2}.*")
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


Cell = str | None
"""The text of a cell; None where the cell to its left goes on."""


def table_rows(
    rows: Iterable[Sequence[Cell]], header_rows: int = 0, *, place: Place | None = None
) -> Iterator[Paragraph]:
    """Yield a paragraph for each row that is not empty.

    The header is said to have so many rows, or is the first row with at least two filled cells, if it is among the
    first rows and holds names alone: different texts, none of them a number or a date, but years and dates under which
    stand none. With names that go over several columns the row below it belongs to it too. What stands above is a
    title. Names of columns in which nothing stands come last. Without a header, the cells of a row stand in one line.
    With the place of a sheet, rows tell their number.
    """
    remaining = iter(rows)
    first = list(islice(remaining, max(_ROWS_BEFORE_HEADER, header_rows)))
    start, end = (0, header_rows) if header_rows else _find_header(first)
    names = _join_names(first[start:end])
    labels = [f"{name}: " if name else "" for name in names]
    bare = set(names)
    texts = chain(
        map(_plain_row, first[:start]),
        repeat("", end - start),
        (_name_row(labels, row, bare) if labels else _plain_row(row) for row in chain(first[end:], remaining)),
    )
    for number, text in enumerate(texts, 1):
        if text:
            yield Paragraph(text=text, place=place, row=None if place is None else number)
    if left := [name for name in names if name in bare and name]:
        yield Paragraph(text=_plain_row(left), place=place, row=None if place is None else end)


def _find_header(first: Sequence[Sequence[Cell]]) -> tuple[int, int]:
    """Return where the header begins and ends; (0, 0) without one."""
    place = next((place for place, row in enumerate(first) if _count_filled(row) >= _MIN_HEADED_COLUMNS), None)
    if place is None:
        return 0, 0
    for start, end in ((place - 1, place + 1), (place, place + 2)):
        rows = first[start:end] if start >= 0 else ()
        if len(rows) == end - start and _is_over(*rows) and _are_names(_join_names(rows), first[end:]):
            return start, end
    return (place, place + 1) if _are_names(_join_names([first[place]]), first[place + 1 :]) else (0, 0)


def _is_over(row: Sequence[Cell], below: Sequence[Cell]) -> bool:
    """Say whether names of a row go over several columns, which the row below it names one by one."""
    groups = [place for place in range(len(row) - 1) if row[place] and not row[place + 1]]
    if not groups or (len(groups) == 1 and groups[0] == 0) or not all(map(_is_name, below)):
        return False
    alone = (place for place, cell in enumerate(row) if cell and place not in groups)
    return all(_at(below, place) in ("", row[place]) for place in alone) and all(
        _at(below, place) and _at(below, place + 1) for place in groups
    )


def _at(row: Sequence[Cell], place: int) -> str:
    return (row[place] or "").strip() if place < len(row) else ""


def _join_names(rows: Sequence[Sequence[Cell]]) -> list[str]:
    """Return the name of each column: those above each other in one, those that go over columns in each of them."""
    names = list[list[str]]()
    for depth, row in enumerate(rows):
        wide = ""
        for place, cell in enumerate(_clean_cells(row)):
            wide = cell or (wide if row[place] is None or depth < len(rows) - 1 else "")
            names += [[]] * (place + 1 - len(names))
            names[place] = [*names[place], wide] if wide and wide not in names[place] else names[place]
    return [" ".join(each) for each in names]


def _is_name(cell: Cell) -> bool:
    return not cell or (len(cell) <= MAX_NAME_CHARACTERS and not _NUMERIC.fullmatch(cell.strip()))


def _are_names(names: Sequence[str], below: Sequence[Sequence[Cell]]) -> bool:
    filled = [name for name in names if name]
    return len(set(filled)) == len(filled) and all(
        _is_name(name) or (_MOMENT.fullmatch(name) is not None and _is_over_others(place, below))
        for place, name in enumerate(names)
    )


def _is_over_others(place: int, below: Sequence[Sequence[Cell]]) -> bool:
    """Say whether something stands in a column, and no years or dates."""
    column = [text for row in below if (text := _at(row, place))]
    return bool(column) and not any(map(_MOMENT.fullmatch, column))


def _count_filled(row: Sequence[Cell]) -> int:
    return sum(1 for cell in row if cell and cell.strip())


def _name_row(labels: Sequence[str], row: Sequence[Cell], bare: set[str]) -> str:
    """Write the cells of a row behind the names of their columns, which are taken from those that nothing is under."""
    cells = [(label, cell) for label, cell in zip_longest(labels, _clean_cells(row), fillvalue="") if cell]
    if bare:
        bare.difference_update(label.removesuffix(": ") for label, _ in cells)
    return "\n".join(label + cell for label, cell in cells)


def _plain_row(row: Sequence[Cell]) -> str:
    return " | ".join(cell for cell in _clean_cells(row) if cell)


def _clean_cells(row: Sequence[Cell]) -> list[str]:
    """Return each cell in one line; a printable row, as most are, has nothing in it that must be replaced."""
    texts = [cell or "" for cell in row]
    if "".join(texts).isprintable():
        return [text.strip() for text in texts]
    return [_LINE_ENDS.sub(" ", storable(text).strip()) for text in texts]
