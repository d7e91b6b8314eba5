"""What a document's form sets apart: headings, labels, tables, and what stands in marks.

Blanks are taken possessively and stretches bounded: whoever writes documents must not be able to make a search of them
take for ever.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

HEADING = re.compile(r"^ {0,3}#{1,6}[^\S\n]++(.{1,300})$|^(.{1,200})\n {0,3}(?:={3,}|-{3,})$", re.MULTILINE)
_TITLE = re.compile(r"^(?: {0,3}#|(?:title|标题)[:：])[^\S\n]*+(?=[^#\s])(.{1,300})$", re.MULTILINE | re.IGNORECASE)
_NUMBERED = re.compile(
    r"^[^\S\n>]{0,3}+(?:> *+)?(?:\d{1,2}\.){1,3}(?:\d{1,2})?[^\S\n]++([^.\n:：。]{2,60})$", re.MULTILINE
)
_CELLS, _LONGEST_ROW = " | ", 600
_TABLE_HEAD = re.compile(r"^([^|\n]{0,500}+\|.{0,500}+)\n[^\S\n]*+\|?+[^\S\n]*+:?-{2,}", re.MULTILINE)
_TABLE_ROW = re.compile(r"^\|(?![-: ]++\|)[^\S\n]*+([^|\n]{1,60}?)[^\S\n]*+\|", re.MULTILINE)
_LIST_LABEL = re.compile(
    r"^[^\S\n]*+(?:[-*+•]|\d++[.)、])[^\S\n]*+(?:\*\*|__)?([^\s*_:：\n][^*_:：\n]{1,40}?)(?:\*\*|__)?[:：]",
    re.MULTILINE,
)

_CODE = re.compile(r"`([^`\n]{2,80})`")
_SET_OFF = re.compile(r"(?<![a-zA-Z0-9_*])(\*{1,3}|__?)(?=[^\s*_])([^*_\n]{2,60}?):?(?<=\S)\1(?![a-zA-Z0-9_*])")
_QUOTED = re.compile('["“‘「『«‹„‚]([^"”“’‘」』»›\n]{2,60})["”“’‘」』»›]')
_SINGLE_QUOTED = re.compile(r"(?<![\w'])'{1,2}([^'\n]{2,60})'{1,2}(?![\w'])")
_TITLED = re.compile("《([^》\n]{2,60})》")


def titles_in(text: str) -> Iterator[str]:
    """Yield the headings of the first level of a Markdown text."""
    yield from (match[1] for match in _TITLE.finditer(text))


def headings_in(text: str) -> Iterator[str]:
    """Yield the headings and table heads of a Markdown text."""
    yield from (match[match.lastindex or 0] for match in HEADING.finditer(text))
    yield from (match[1] for match in _NUMBERED.finditer(text))
    for match in _TABLE_HEAD.finditer(text):
        yield from (cell.strip() for cell in match[1].split("|") if cell.strip())
    for above, line in pairwise(("", *filter(str.strip, text.split("\n")))):
        if _is_row(line) and not _is_row(above):
            yield from (cell.strip() for cell in line.split(_CELLS))


def rows_in(text: str) -> Iterator[str]:
    """Yield what stands in front of a table's rows."""
    yield from (match[1] for match in _TABLE_ROW.finditer(text))
    yield from (line.partition(_CELLS)[0].strip() for line in text.split("\n") if _is_row(line))


def items_in(text: str) -> Iterator[str]:
    """Yield what stands before the colon of a list's items."""
    yield from (match[1] for match in _LIST_LABEL.finditer(text))


def quoted_in(text: str) -> Iterator[str]:
    """Yield what stands in quotation marks."""
    yield from (match[1] for pattern in (_QUOTED, _SINGLE_QUOTED) for match in pattern.finditer(text))


def set_off_in(text: str) -> Iterator[str]:
    """Yield what a text sets off by markup or the marks of a title."""
    yield from (match[1] for pattern in (_CODE, _TITLED) for match in pattern.finditer(text))
    yield from (match[2] for match in _SET_OFF.finditer(text))


def _is_row(line: str) -> bool:
    """Tell whether a line is a row of a table without a frame, as documents other than Markdown are read."""
    return _CELLS in line and not line.lstrip().startswith("|") and len(line) <= _LONGEST_ROW
