"""CSV and its relatives: the encoding and the delimiter are found out."""

import csv
from collections import Counter
from collections.abc import Iterator
from io import BytesIO, StringIO, TextIOWrapper
from itertools import islice

from backend.extraction.domain.blocks import Block
from backend.extraction.formats.encodings import find_encoding
from backend.extraction.formats.tables import CellBudget, table_rows
from backend.extraction.formats.text import check_is_text
from shared.errors import InvalidRequest
from shared.models.values import Place

MAX_FIELD_CHARACTERS = 20_000_000
"""As many as a document may have (`ContentLimits.text_characters`): the library's own limit is 131,072."""

DELIMITERS = ",;\t|"
_SAMPLE_CHARACTERS = 64 * 1024
_SAMPLE_ROWS = 50


def read_csv(body: bytes) -> Iterator[Block]:
    """Yield a paragraph for each row.

    Raises:
        InvalidRequest: the file holds NULs or other control characters, or a field of more than
            `MAX_FIELD_CHARACTERS`; or its encoding is uncertain.
    """
    encoding = find_encoding(body)
    budget = CellBudget("CSV")
    try:
        yield from table_rows(_rows(body, encoding.name, budget), place=Place())
    except UnicodeDecodeError as error:
        said = f"The CSV is not valid {encoding.name.upper()} at byte {error.start}."
        raise InvalidRequest(said, param="body") from None
    except csv.Error as error:
        raise InvalidRequest(f"The CSV cannot be read: {error}.", param="body") from error
    yield from encoding.notes()


def _rows(body: bytes, encoding: str, budget: CellBudget) -> Iterator[list[str]]:
    csv.field_size_limit(MAX_FIELD_CHARACTERS)
    with TextIOWrapper(BytesIO(body), encoding=encoding, newline="") as text:
        sample = text.read(_SAMPLE_CHARACTERS)
        check_is_text(sample, "CSV")
        delimiter = _delimiter(sample)
        text.seek(0)
        for row in csv.reader(text, delimiter=delimiter):
            budget.take(max(1, len(row)))
            if "\x00" in "".join(row):
                raise InvalidRequest("The CSV holds a NUL character.", param="body")
            yield row


def _delimiter(sample: str) -> str:
    """Return the delimiter with which most rows have the same number of fields, more than one."""
    return max(DELIMITERS, key=lambda delimiter: _regularity(sample, delimiter))


def _regularity(sample: str, delimiter: str) -> tuple[float, int]:
    try:
        rows = list(islice(csv.reader(StringIO(sample, newline=""), delimiter=delimiter), _SAMPLE_ROWS))
    except csv.Error:
        return (0.0, 0)
    # The sample may end within a row.
    widths = Counter(len(row) for row in (rows[:-1] or rows) if row)
    width, count = max(widths.items(), key=lambda each: (each[1], each[0]), default=(0, 0))
    return (count / widths.total(), width) if width > 1 else (0.0, 0)
