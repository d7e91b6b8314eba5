"""RTF 1.9.1: its text in order, tables row by row; notes, comments and text boxes stand behind their paragraph."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import ClassVar, NamedTuple

from backend.extraction.domain.blocks import Block, Heading, Note, Paragraph
from backend.extraction.formats.tables import Cell, CellBudget, table_rows
from backend.extraction.formats.text import storable
from shared.errors import InvalidRequest

_START = b"{\\rtf"
_TOKEN = re.compile(
    r"\\(?P<word>[A-Za-z]+)(?P<number>-?\d{1,10})? ?|\\'(?P<hex>[0-9a-fA-F]{2})|\\(?P<sign>[^A-Za-z])"
    r"|(?P<brace>[{}])|[\r\n]+|(?P<text>[^\\{}\r\n]+)"
)
_SIGNS = {
    "tab": "\t",
    "line": "\n",
    "lbr": "\n",
    "emdash": "\u2014",
    "endash": "\u2013",
    "bullet": "\u2022",
    "lquote": "\u2018",
    "rquote": "\u2019",
    "ldblquote": "\u201c",
    "rdblquote": "\u201d",
    "~": "\u00a0",
    "_": "-",
    "\\": "\\",
    "{": "{",
    "}": "}",
}
_ENDS = frozenset(("par", "page", "sect", "\n", "\r"))
_SKIPPED = frozenset(
    {
        *("colortbl", "info", "fldinst", "nonshppict", "objdata", "sn", "sv", "shprslt", "nonesttables"),
        *("nesttableprops", "datastore", "themedata", "atnid", "atnauthor", "ftnsep", "ftnsepc", "aftnsep", "aftnsepc"),
    }
)
_ENTERED = frozenset(("shpinst", "shppict", "annotation", "ud", "shptxt"))
"""Groups that are read although programs that do not know them are told to skip them."""
_APART = {"footnote": "Footnote", "annotation": "Comment", "shptxt": ""}
_MARGINS = {f"{kind}{pages}": kind for kind in ("header", "footer") for pages in ("", "l", "r", "f")}
_CHARSETS = {
    128: "cp932",
    129: "cp949",
    134: "gbk",
    136: "big5",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
}
_MACINTOSH = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}


class _Group(NamedTuple):
    """What holds between two braces."""

    flow: "_Flow"
    is_skipped: bool = False
    is_unseen: bool = False
    table: str = ""
    fallback_characters: int = 1
    encoding: str = ""
    font: int = 0


class _Flow:
    """Text that stands below each other: the document's, or that of a note, a text box, a header."""

    def __init__(self, budget: CellBudget, kind: str = "") -> None:
        self._budget = budget
        self.kind = kind
        self.blocks = list[Block]()
        self.apart = list[Paragraph]()
        self.level: int | None = None
        self.is_in_table = False
        self._texts = list[str]()
        self._cells, self._rows, self._heads = list[Cell](), list[list[Cell]](), 0

    def say(self, text: str) -> None:
        self._texts.append(text)

    def end_paragraph(self) -> None:
        if self.is_in_table:
            self._texts.append("\n")
            return
        self._end_table()
        text = self._take_text()
        self.blocks += [Paragraph(text=text) if self.level is None else Heading(level=self.level, text=text)]
        self._put_apart()

    def end_cell(self) -> None:
        self._cells.append(self._take_text())

    def end_row(self) -> None:
        self._budget.take(max(1, len(self._cells)))
        self._rows.append(self._cells)
        self._cells = []

    def mark_head(self) -> None:
        self._heads = len(self._rows) + 1

    def close(self) -> list[Block]:
        self.is_in_table = False
        self.end_paragraph()
        return self.blocks

    def _end_table(self) -> None:
        if self._cells:
            self.end_row()
        if self._rows:
            self.blocks += table_rows(self._rows, min(self._heads, len(self._rows)))
            self._rows, self._heads = [], 0
            self._put_apart()

    def _put_apart(self) -> None:
        self.blocks += self.apart
        self.apart = []

    def _take_text(self) -> str:
        # Signs beyond the first plane are written as two halves.
        text = "".join(self._texts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        self._texts = []
        return storable(text).strip()


class _Document:
    """Goes through the words of a file."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._budget = CellBudget("RTF")
        self._group = _Group(_Flow(self._budget), encoding="cp1252")
        self._above = list[_Group]()
        self._fonts = dict[int, str]()
        self._levels = dict[int, int]()
        self._style = 0
        self._bytes = bytearray()
        self._to_skip = 0
        self._is_optional = False
        self.margins: dict[str, dict[str, None]] = {"header": {}, "footer": {}}
        self.left_out = Counter[str]()

    def read(self) -> Iterator[Block]:
        body = self._group.flow
        place = 0
        while found := _TOKEN.match(self._source, place):
            place = found.end()
            if found["word"] == "bin":
                place += max(0, int(found["number"] or 0))
            else:
                self._take(found)
        self._end_bytes()
        blocks = body.close()
        yield from (Paragraph(text=text) for text in self.margins["header"])
        yield from blocks
        yield from (Paragraph(text=text) for text in self.margins["footer"])
        for what, count in self.left_out.items():
            yield Note(text=f"{what}: {count}.")

    def _take(self, found: re.Match[str]) -> None:
        if found["hex"]:
            self._say_bytes(bytes.fromhex(found["hex"]))
        elif found["text"]:
            self._say_bytes(found["text"].encode("latin-1"))
        elif found["brace"] or found["word"] or found["sign"]:
            self._end_bytes()
            if found["brace"] == "{":
                self._above.append(self._group)
                self._to_skip = 0
            elif found["brace"]:
                self._leave()
            else:
                self._word(found["word"] or found["sign"], found["number"])

    def _leave(self) -> None:
        left, self._to_skip, self._is_optional = self._group, 0, False
        if not self._above:
            return
        self._group = self._above.pop()
        if left.flow is self._group.flow:
            return
        blocks = [block.text for block in left.flow.close() if block.text.strip()]
        if left.flow.kind in self.margins:
            self.margins[left.flow.kind] |= dict.fromkeys(blocks)
        elif blocks:
            text = " ".join(blocks) if left.flow.kind else "\n".join(blocks)
            self._group.flow.apart.append(Paragraph(text=f"{left.flow.kind}: {text}" if left.flow.kind else text))

    def _word(self, word: str, number: str | None) -> None:
        is_optional, self._is_optional = self._is_optional, word == "*"
        count = int(number) if number else None
        if word in _APART or word in _MARGINS:
            self._open(word)
        elif word in _SKIPPED or (is_optional and word not in _ENTERED):
            self._group = self._group._replace(is_skipped=True)
        elif word in ("fonttbl", "stylesheet"):
            self._group = self._group._replace(table=word)
        elif word in _SIGNS:
            self._say(_SIGNS[word])
        elif word in _ENDS and self._is_shown:
            self._group.flow.end_paragraph()
        elif word in self._WORDS:
            self._WORDS[word](self, count)
        elif word in _MACINTOSH:
            self._group = self._group._replace(encoding=_MACINTOSH[word])

    def _open(self, word: str) -> None:
        """Begin a text that stands apart; it inherits that it is skipped."""
        kind = _MARGINS.get(word) or _APART.get(word, "")
        self._group = self._group._replace(flow=_Flow(self._budget, kind))

    @property
    def _is_shown(self) -> bool:
        return not (self._group.is_skipped or self._group.is_unseen or self._group.table)

    def _say(self, text: str) -> None:
        if self._to_skip:
            self._to_skip -= 1
        elif self._is_shown:
            self._group.flow.say(text)

    def _say_bytes(self, some: bytes) -> None:
        skipped = min(self._to_skip, len(some))
        self._to_skip -= skipped
        if self._is_shown:
            self._bytes += some[skipped:]

    def _end_bytes(self) -> None:
        """Decode what was collected: a sign may take two bytes, the second of which is written as a letter."""
        if self._bytes:
            encoding = self._fonts.get(self._group.font) or self._group.encoding
            self._group.flow.say(self._bytes.decode(encoding, "replace"))
            self._bytes.clear()

    def _unicode(self, number: int | None) -> None:
        self._say(chr((number or 0) % 0x10000))
        self._to_skip = self._group.fallback_characters

    def _code_page(self, number: int | None) -> None:
        with suppress(LookupError):
            "".encode(f"cp{number}")
            self._group = self._group._replace(encoding=f"cp{number}")

    def _hide(self, number: int | None) -> None:
        is_begun = number != 0 and not self._group.is_unseen
        self._group = self._group._replace(is_unseen=number != 0)
        self.left_out["Hidden texts that were left out"] += is_begun and not self._group.table

    def _delete(self, number: int | None) -> None:
        self._group = self._group._replace(is_unseen=number != 0)

    def _end_format(self, _: int | None) -> None:
        self._group = self._group._replace(is_unseen=False)

    def _begin_paragraph(self, _: int | None) -> None:
        self._group.flow.is_in_table, self._group.flow.level = False, None

    def _set_in_table(self, _: int | None) -> None:
        self._group.flow.is_in_table = True

    def _set_style(self, number: int | None) -> None:
        self._style = number or 0
        if not self._group.table:
            self._group.flow.level = self._levels.get(self._style)

    def _set_level(self, number: int | None) -> None:
        level = (number or 0) + 1
        if level > 9:
            return
        if self._group.table:
            self._levels[self._style] = level
        else:
            self._group.flow.level = level

    def _set_font(self, number: int | None) -> None:
        self._group = self._group._replace(font=number or 0)

    def _set_charset(self, number: int | None) -> None:
        if self._group.table == "fonttbl" and number in _CHARSETS:
            self._fonts[self._group.font] = _CHARSETS[number]

    def _set_fallback(self, number: int | None) -> None:
        self._group = self._group._replace(fallback_characters=max(0, number if number is not None else 1))

    def _skip_picture(self, _: int | None) -> None:
        self.left_out["Pictures that were not read"] += not self._group.is_skipped
        self._group = self._group._replace(is_skipped=True)

    def _end_cell(self, _: int | None) -> None:
        if not self._group.is_skipped:
            self._group.flow.end_cell()

    def _end_row(self, _: int | None) -> None:
        if not self._group.is_skipped:
            self._group.flow.end_row()

    def _mark_head(self, _: int | None) -> None:
        self._group.flow.mark_head()

    _WORDS: ClassVar = {
        "u": _unicode,
        "uc": _set_fallback,
        "ansicpg": _code_page,
        "f": _set_font,
        "fcharset": _set_charset,
        "v": _hide,
        "deleted": _delete,
        "plain": _end_format,
        "pict": _skip_picture,
        "pard": _begin_paragraph,
        "s": _set_style,
        "outlinelevel": _set_level,
        "intbl": _set_in_table,
        "cell": _end_cell,
        "nestcell": _end_cell,
        "row": _end_row,
        "nestrow": _end_row,
        "trhdr": _mark_head,
    }


def read_rtf(body: bytes) -> Iterator[Block]:
    """Yield headers once, the text, footers once, and notes of what was left out.

    Raises:
        InvalidRequest: the file is no RTF.
    """
    if not body.startswith(_START):
        raise InvalidRequest("The file is no RTF.", param="body")
    yield from _Document(body.decode("latin-1")).read()
