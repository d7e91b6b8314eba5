"""CSV and its relatives: the encoding and the delimiter are found out."""

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterator
from io import BytesIO, StringIO, TextIOWrapper
from itertools import islice

from backend.extraction.domain.blocks import Block
from backend.extraction.formats.tables import CellBudget, table_rows
from shared.errors import InvalidRequest

MAX_FIELD_CHARACTERS = 20_000_000
"""As many as a document may have (`ContentLimits.text_characters`): the library's own limit is 131,072."""

DELIMITERS = ",;\t|"
_SAMPLE_CHARACTERS = 64 * 1024
_SAMPLE_ROWS = 50

_SAMPLE_BYTES = 1024 * 1024
_UTF16_SAMPLE_BYTES = 4096
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_HIGH = re.compile(rb"[\x80-\xff]")
_HANZI = re.compile(rb"[\xa1-\xf7][\xa1-\xfe]")
"""The rows of GB2312, in which nearly all Chinese text lies; in Latin-1 two such letters seldom follow each other."""

_HANZI_SHARE = 0.8
_CONTROLS = re.compile("[\x01-\x08\x0e-\x1a\x1c-\x1f]")
_MAX_CONTROL_SHARE = 0.001
_NUL_SHARE_OF_UTF16 = 0.3


def read_csv(body: bytes) -> Iterator[Block]:
    """Yield a paragraph for each row.

    Raises:
        InvalidRequest: the file holds NULs or other control characters, or a field of more than
            `MAX_FIELD_CHARACTERS`; or it begins like UTF-8 or UTF-16 and is not.
    """
    encoding = _find_encoding(body)
    budget = CellBudget("CSV")
    try:
        yield from table_rows(_rows(body, encoding, budget))
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The CSV is not valid {encoding.upper()} at byte {error.start}.", param="body") from None
    except csv.Error as error:
        raise InvalidRequest(f"The CSV cannot be read: {error}.", param="body") from error


def _rows(body: bytes, encoding: str, budget: CellBudget) -> Iterator[list[str]]:
    csv.field_size_limit(MAX_FIELD_CHARACTERS)
    with TextIOWrapper(BytesIO(body), encoding=encoding, newline="") as text:
        sample = text.read(_SAMPLE_CHARACTERS)
        _check_is_text(sample)
        delimiter = _delimiter(sample)
        text.seek(0)
        for row in csv.reader(text, delimiter=delimiter):
            budget.take(max(1, len(row)))
            if "\x00" in "".join(row):
                raise InvalidRequest("The CSV holds a NUL character.", param="body")
            yield row


def _check_is_text(sample: str) -> None:
    if "\x00" in sample:
        raise InvalidRequest(f"The CSV holds a NUL character at {sample.index(chr(0))}.", param="body")
    if len(_CONTROLS.findall(sample)) > _MAX_CONTROL_SHARE * len(sample):
        raise InvalidRequest("The CSV is no text: it holds control characters.", param="body")


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


def _find_encoding(body: bytes) -> str:
    """Return the name of the encoding: as marked, else the first that fits of UTF-16, UTF-8, GB18030 and Latin-1."""
    marked = next((name for mark, name in _BYTE_ORDER_MARKS.items() if body.startswith(mark)), None)
    return marked or _find_utf16(body[:_UTF16_SAMPLE_BYTES]) or _eight_bit(body)


def _find_utf16(start: bytes) -> str | None:
    """Tell UTF-16 by the NULs that every character of ASCII has in it, at even places or at odd ones."""
    nuls = [start[first::2].count(0) / max(1, len(start) // 2) for first in (0, 1)]
    if max(nuls) < _NUL_SHARE_OF_UTF16 or min(nuls) > 0:
        return None
    return "utf-16-be" if nuls[0] else "utf-16-le"


def _eight_bit(body: bytes) -> str:
    if _fits(body, "utf-8"):
        return "utf-8"
    sample = body[:_SAMPLE_BYTES]
    high = len(_HIGH.findall(sample))
    is_chinese = 2 * len(_HANZI.findall(sample)) >= _HANZI_SHARE * high
    if is_chinese and _fits(body, "gb18030"):
        return "gb18030"
    return "cp1252" if _fits(body, "cp1252") else "latin-1"


def _fits(body: bytes, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for start in range(0, len(body), _SAMPLE_BYTES):
            decoder.decode(body[start : start + _SAMPLE_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
