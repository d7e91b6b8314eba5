"""PDF, page by page; its text has lines but no headings."""

import re
from collections.abc import Iterator, Sequence
from ctypes import PYFUNCTYPE, addressof, c_double, c_int, c_ushort, c_void_p
from functools import partial
from itertools import chain
from statistics import median
from typing import Any

from pypdfium2 import PdfDocument, PdfiumError

from backend.extraction.domain.blocks import Block, Note, Picture, put_at
from backend.extraction.formats.pdf.annotations import Annotations, Handle, pointer_to, raw
from backend.extraction.formats.pdf.drawing import draw_page, has_content, pictures_on
from backend.extraction.formats.pdf.layout import RIGHT_TO_LEFT, LinePart, join_segments
from backend.extraction.formats.text import paragraphs_of, storable
from shared.errors import InvalidRequest, PayloadTooLarge
from shared.models.values import Place

MAX_PAGES = 5000

_MIN_GAP = 1.4
"""How wide a gap within a line must be, in heights of the line, to part columns or cells."""
_MIN_CHARACTER_WIDTH = 0.35
"""In heights of the line; what is no wider has no gap in it."""
_LOOSE = 1.15
_MIN_WIDE_SHARE = 0.6
_SAMPLED = 8
_MIN_HEIGHT = 0.1

_find_box = PYFUNCTYPE(c_int, c_void_p, c_int, c_void_p)(pointer_to(raw.FPDFText_GetLooseCharBox))
_find_origin = PYFUNCTYPE(c_int, c_void_p, c_int, c_void_p, c_void_p)(pointer_to(raw.FPDFText_GetCharOrigin))
_LINE = re.compile("[^\\s\ufffe](?:[^\r\n\ufffe]*[^\\s\ufffe])?\ufffe?")
_WORD = re.compile("[^\\s\ufffe]+\ufffe?")
_BROKEN_WORD = "\ufffe"
"""Stands in the library's texts for a hyphen at the end of a line, and for that end."""
_TURNED_LIGATURE = re.compile("\u0647\u0644\u0644\u0627|[\u0622\u0623\u0625\u0627]\u0644")
"""Arabic ligatures with their letters backwards, as the library turns lines of such scripts letter by letter."""
_TURNED_BRACKETS = re.compile(r"\)[^()\r\n]*\(|\][^\[\]\r\n]*\[")
_MIRRORED = str.maketrans("()[]", ")(][")
_UNKNOWN = re.compile("[\ufffd\ue000-\uf8ff]")
_MAX_UNKNOWN_SHARE = 0.1


def read_pdf(body: bytes) -> Iterator[Block]:
    """Yield the paragraphs of each page, its comments and what was filled into its forms.

    Raises:
        InvalidRequest: the file is damaged as a whole, or needs a password to be opened.
        PayloadTooLarge: it has more than `MAX_PAGES` pages.
    """
    with _open(body) as document:
        count = len(document)
        if count > MAX_PAGES:
            raise PayloadTooLarge(f"The PDF must have at most {MAX_PAGES} pages.", param="body")
        annotations = Annotations(document)
        for number in range(1, count + 1):
            page = raw.FPDF_LoadPage(document, number - 1)
            try:
                blocks = (
                    chain(_text_or_pictures(document, page, f"Page {number} of {count}"), annotations.of_page(page))
                    if page
                    else [Note(text=f"Page {number} of {count} is damaged.")]
                )
                yield from put_at(Place(page=number), blocks)
            finally:
                raw.FPDF_ClosePage(page)
        yield from annotations.leftovers()


def _open(body: bytes) -> PdfDocument:
    try:
        return PdfDocument(body)
    except PdfiumError as error:
        untyped: Any = error
        what = "must not be encrypted" if untyped.err_code == raw.FPDF_ERR_PASSWORD else "cannot be read; it is damaged"
        raise InvalidRequest(f"The PDF {what}.", param="body") from error


def _text_or_pictures(document: PdfDocument, page: Handle, name: str) -> Iterator[Block]:
    text = _text_of(page)
    if text is None:
        yield Note(text=f"{name} is damaged.")
    elif text.strip():
        if len(_UNKNOWN.findall(text)) > _MAX_UNKNOWN_SHARE * len(text):
            yield Note(text=f"{name} is in a font that does not say which characters it shows.")
        yield from paragraphs_of(text)
        yield from pictures_on(page, document)
    elif has_content(page):
        yield Picture(draw=partial(draw_page, page), name=name)
    else:
        yield Note(text=f"{name} has no text.")


def _text_of(page: Handle) -> str | None:
    text_page = raw.FPDFText_LoadPage(page)
    if not text_page:
        return None
    try:
        return storable(join_segments(_Characters(text_page).segments()))
    finally:
        raw.FPDFText_ClosePage(text_page)


class _Characters:
    """The characters of a page, in the order of the file, and where they stand."""

    def __init__(self, text_page: Handle) -> None:
        self._page = text_page
        self._count = raw.FPDFText_CountChars(text_page)
        buffer = (c_ushort * (self._count + 1))()
        written = raw.FPDFText_GetText(text_page, 0, self._count, buffer)
        self._text = bytes(buffer)[: 2 * written - 2].decode("utf-16-le", "replace")
        self._is_aligned = len(self._text) == self._count
        self._address = pointer_to(text_page)
        self._x, self._y = c_double(), c_double()
        self._box = raw.FS_RECTF()
        self._is_right_to_left = RIGHT_TO_LEFT.search(self._text) is not None
        if self._is_right_to_left:
            text = _TURNED_LIGATURE.sub(self._turn_ligature, self._text)
            self._text = _TURNED_BRACKETS.sub(lambda found: found[0].translate(_MIRRORED), text)

    def segments(self) -> list[LinePart]:
        """Return the lines, cut where wide gaps are in them.

        Asking where a character stands takes a microsecond. So only lines that are long for the number of their
        characters are looked at word by word, and of those that are just wide few, until one is found with a gap.
        """
        spans = [line.span() for line in _LINE.finditer(self._text)]
        lines = [self._segment(start, end) for start, end in spans]
        if not lines or self._is_right_to_left:
            return lines
        usual = _LOOSE * median([line.width / len(line.text) for line in lines])
        wide = _MIN_WIDE_SHARE * (max(line.right for line in lines) - min(line.left for line in lines))
        found = list[LinePart]()
        is_sparse = True
        for place, ((start, end), line) in enumerate(zip(spans, lines, strict=True)):
            is_loose = line.width > usual * len(line.text)
            if is_loose or (line.width > wide and (place % _SAMPLED == 0 or not is_sparse)):
                parts = self._cut(line, start, end)
                is_sparse = is_sparse and (is_loose or len(parts) == 1)
                found += parts
            else:
                found.append(line)
        return found

    def _cut(self, line: LinePart, start: int, end: int) -> Sequence[LinePart]:
        parts = list[LinePart]()
        height = max(_MIN_HEIGHT, line.height)
        (word_start, word_end), *words = [word.span() for word in _WORD.finditer(self._text, start, end)]
        x = self._x_of(word_start)
        for next_start, next_end in words:
            x_before, x = x, self._x_of(next_start)
            if abs(x - x_before) > (_MIN_GAP + (next_start - word_start) * _MIN_CHARACTER_WIDTH) * height:
                before, after = self._segment(start, word_end), self._segment(next_start, next_end)
                if max(after.left - before.right, before.left - after.right) > _MIN_GAP * height:
                    parts.append(before)
                    start = next_start
            word_start, word_end = next_start, next_end
        return [*parts, self._segment(start, end)] if parts else [line]

    def _segment(self, start: int, end: int) -> LinePart:
        """Return a part of a line; white space at its ends has no place in the text."""
        text = self._text[start:end]
        if self._text[end - 1] == _BROKEN_WORD:
            text, end = text[:-1] + "-", end - 1
        box, address = self._box, addressof(self._box)
        _find_box(self._address, self._index(start), address)
        left, bottom, right, top = box.left, box.bottom, box.right, box.top
        _find_box(self._address, self._index(end - 1), address)
        return LinePart(text, min(left, box.left), bottom, max(right, box.right), top)

    def _turn_ligature(self, turned: re.Match[str]) -> str:
        is_one_glyph = self._x_of(turned.start()) == self._x_of(turned.end() - 1)
        return turned[0][::-1] if is_one_glyph else turned[0]

    def _x_of(self, place: int) -> float:
        _find_origin(self._address, self._index(place), addressof(self._x), addressof(self._y))
        return self._x.value

    def _index(self, place: int) -> int:
        """Return the index of a character on the page, where some have no place in the text."""
        if self._is_aligned:
            return place
        return max(0, raw.FPDFText_GetCharIndexFromTextIndex(self._page, place))
