"""XLSX, sheet by sheet, hidden ones too: values as they are seen, dates in the form of ISO 8601."""

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple
from xml.sax.saxutils import unescape
from zipfile import ZipFile

from openpyxl import load_workbook
from openpyxl.utils.cell import coordinate_to_tuple, get_column_letter
from openpyxl.utils.exceptions import InvalidFileException

from backend.extraction.domain.blocks import Block, Heading, Note, Paragraph, Picture, put_at
from backend.extraction.domain.media_types import XLSX
from backend.extraction.formats.archives import read_archive
from backend.extraction.formats.charts import KINDS, read_drawing
from backend.extraction.formats.number_formats import show_number
from backend.extraction.formats.office_xml import DAMAGED, Package, find_part, is_named, value
from backend.extraction.formats.pictures.files import picture_in_document
from backend.extraction.formats.tables import MAX_NAME_CHARACTERS, Cell, CellBudget, table_rows
from backend.extraction.formats.text import storable
from shared.models.values import Place

_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"')
_UNCOMPUTED = re.compile(
    rb'<(?:\w+:)?c\s[^>]*?\br="([A-Z]{1,3}\d{1,7})"[^>]*>\s*<(?:\w+:)?f[^>]*>([^<]{0,8192})</(?:\w+:)?f>'
    rb"\s*(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v>\s*</(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)
_WINDOW_BYTES, _OVERLAP_BYTES = 1 << 20, 1 << 14
_MAX_MERGED_COLUMNS = 256
_QUOTES = {"&quot;": '"', "&apos;": "'"}


class _Merge(NamedTuple):
    left: int
    top: int
    right: int
    bottom: int


class _Extras(NamedTuple):
    """What stands in the part of a sheet beside the values of its cells; formulas are those without a value."""

    merges: Sequence[_Merge]
    formulas: Mapping[str, str]


def read_xlsx(body: bytes) -> Iterator[Block]:
    """Yield each sheet as a heading of its name, its rows, its comments and its charts."""
    return read_archive(body, XLSX, _sheets, (InvalidFileException,))


def _sheets(file: BytesIO) -> Iterator[Block]:
    with warnings.catch_warnings(), ZipFile(file) as archive:
        # The library warns of styles and extensions that it leaves out.
        warnings.simplefilter("ignore")
        package = Package(archive)
        parts = _sheet_parts(package)
        book = load_workbook(file, read_only=True, data_only=True)
        sheets, budget = {sheet.title: sheet for sheet in book.worksheets}, CellBudget("XLSX")
        empty = list[str]()
        for name in dict.fromkeys((*parts, *sheets)):
            blocks = _read_safely(name, package, parts.get(name), sheets.get(name), budget)
            first, title = next(blocks, None), storable(name)
            if first is None:
                empty.append(title)
                continue
            yield Heading(level=1, text=title, place=Place(sheet=title))
            yield first
            yield from blocks
        if empty:
            said = f"Sheets without text: {', '.join(empty)}."
            yield Note(text=said) if len(empty) == len(sheets) else Paragraph(text=said)


def _read_safely(name: str, package: Package, part: str | None, cells: Any, budget: CellBudget) -> Iterator[Block]:
    """Read a sheet up to where it is damaged; what is a chart alone has no `cells`."""
    title = storable(name)
    extras, place = _Extras((), {}), Place(sheet=title)
    try:
        extras = _scan(package, part) if part else extras
        rows = _texts(_rows(cells), extras.formulas, budget)
        yield from table_rows(_fill_merged(rows, extras.merges), place=place)
        yield from put_at(place, _around(package, part))
    except DAMAGED:
        yield Note(text=f"Sheet {title} is damaged: what stood behind its last row here was left out.")
    if extras.formulas:
        yield Note(text=f"Formulas without a computed value in {title}: {len(extras.formulas)}.")


def _rows(cells: Any) -> Iterable[Sequence[Any]]:
    """Return the rows of a sheet, whose claim of its size may be wrong: too small, or millions that are not there."""
    if cells is None:
        return ()
    cells.reset_dimensions()
    return cells.iter_rows()


def _sheet_parts(package: Package) -> Mapping[str, str]:
    """Return the parts of the sheets by their names."""
    book = find_part(package.relationships(""), "officeDocument") or "xl/workbook.xml"
    root, related = package.read(book), package.relationships(book)
    sheets = [each for each in (root.iter() if root is not None else ()) if is_named(each, "sheet")]
    ids = {each.get("name", ""): value(each, "r:id") or "" for each in sheets}
    return {name: related[one].part for name, one in ids.items() if one in related}


def _scan(package: Package, part: str) -> _Extras:
    """Look through the part of a sheet, which may be large, for what the library does not tell while it streams."""
    merges, formulas = dict[bytes, None](), dict[str, str]()
    rest = b""
    with package.open(part) as file:
        while window := file.read(_WINDOW_BYTES):
            text = rest + window
            merges |= dict.fromkeys(_MERGED.findall(text))
            formulas |= {
                name.decode(): unescape(formula.decode("utf-8", "replace"), _QUOTES)
                for name, formula in _UNCOMPUTED.findall(text)
            }
            rest = text[-_OVERLAP_BYTES:]
    return _Extras(sorted(map(_read_merge, merges), key=lambda each: each.top), formulas)


def _read_merge(area: bytes) -> _Merge:
    (top, left), (bottom, right) = map(coordinate_to_tuple, area.decode().split(":"))
    return _Merge(left, top, right, bottom)


def _fill_merged(rows: Iterable[list[Cell]], merges: Sequence[_Merge]) -> Iterator[list[Cell]]:
    """Write short texts of cells that go over several rows into each of them; others to the right go on."""
    waiting, open_merges = list(reversed(merges)), dict[_Merge, Cell]()
    for number, row in enumerate(rows, 1):
        while waiting and waiting[-1].top <= number:
            merge = waiting.pop()
            text = row[merge.left - 1] if merge.left <= len(row) else ""
            open_merges[merge] = text if text and len(text) <= MAX_NAME_CHARACTERS else ""
        if open_merges and any(row):
            for merge, text in open_merges.items():
                row += [""] * (merge.left - len(row))
                row[merge.left - 1] = row[merge.left - 1] or text
                last = min(merge.right, max(len(row), _MAX_MERGED_COLUMNS))
                row[merge.left : last] = [None] * (last - merge.left)
        open_merges = {merge: text for merge, text in open_merges.items() if merge.bottom > number}
        yield row


def _around(package: Package, part: str | None) -> Iterator[Block]:
    """Yield what is attached to a sheet: comments, text boxes, charts."""
    for each in package.relationships(part).values() if part else ():
        if each.kind == "comments":
            yield from _comments(package, each.part)
        elif each.kind == "drawing":
            yield from _text_boxes(package, each.part)
            for drawn in package.relationships(each.part).values():
                yield from read_drawing(package, drawn) if drawn.kind in KINDS else ()
                yield from [_picture(package, drawn.part)] if drawn.kind == "image" else ()


def _picture(package: Package, part: str) -> Picture:
    return picture_in_document(partial(package.read_bytes, part))


def _comments(package: Package, part: str) -> Iterator[Block]:
    root = package.read(part)
    for comment in root.iter() if root is not None else ():
        if is_named(comment, "comment"):
            text = "".join(each.text or "" for each in comment.iter() if is_named(each, "t"))
            yield Paragraph(text=storable(f"Comment on {comment.get('ref', '')}: {text.strip()}"))


def _text_boxes(package: Package, part: str) -> Iterator[Block]:
    root = package.read(part)
    for line in root.iter() if root is not None else ():
        if is_named(line, "a:p"):
            yield Paragraph(text=storable("".join(each.text or "" for each in line.iter() if is_named(each, "a:t"))))


def _texts(rows: Iterable[Sequence[Any]], formulas: Mapping[str, str], budget: CellBudget) -> Iterator[list[Cell]]:
    for number, row in enumerate(rows, 1):
        budget.take(max(1, len(row)))
        texts: list[Cell] = [_cell_text(cell) for cell in row]
        for place in range(len(texts)) if formulas else ():
            formula = formulas.get(f"{get_column_letter(place + 1)}{number}")
            texts[place] = f"={formula}" if formula and not texts[place] else texts[place]
        yield texts


def _cell_text(cell: Any) -> str:
    value = cell.value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (show_number(value, cell.number_format) if is_number else None) or _text(value)


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            # Excel computes with 15 digits; more of them show how a binary number misses a decimal one.
            return f"{value:.15g}"
        case datetime():
            is_day = value.time() == time(0)
            return value.date().isoformat() if is_day else value.isoformat(timespec="seconds")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return _duration(value)
        case _:
            return str(value)


def _duration(value: timedelta) -> str:
    minutes, seconds = divmod(int(value.total_seconds()), 60)
    return f"PT{minutes // 60}H{minutes % 60}M{seconds}S"
