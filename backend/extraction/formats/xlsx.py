"""XLSX, sheet by sheet, hidden ones too: the values that were last computed, dates in the form of ISO 8601."""

import warnings
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from io import BytesIO

from openpyxl import load_workbook
from openpyxl.utils.exceptions import InvalidFileException

from backend.extraction.domain.blocks import Block, Heading
from backend.extraction.domain.media_types import XLSX
from backend.extraction.formats.archives import read_archive
from backend.extraction.formats.tables import CellBudget, table_rows
from backend.extraction.formats.text import storable


def read_xlsx(body: bytes) -> Iterator[Block]:
    """Yield each sheet as a heading of its name and its rows."""
    return read_archive(body, XLSX, _sheets, (InvalidFileException,))


def _sheets(file: BytesIO) -> Iterator[Block]:
    with warnings.catch_warnings():
        # The library warns of styles and extensions that it leaves out.
        warnings.simplefilter("ignore")
        book = load_workbook(file, read_only=True, data_only=True)
        budget = CellBudget("XLSX")
        for sheet in book.worksheets:
            # The size that a sheet claims may be wrong: too small, or millions of cells that are not there.
            sheet.reset_dimensions()
            rows = _texts(sheet.iter_rows(values_only=True), budget)
            for place, paragraph in enumerate(table_rows(rows)):
                if not place:
                    yield Heading(level=1, text=storable(sheet.title))
                yield paragraph


def _texts(rows: Iterable[tuple[object, ...]], budget: CellBudget) -> Iterator[list[str]]:
    for row in rows:
        budget.take(max(1, len(row)))
        if row:
            yield [_text(value) for value in row]


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
