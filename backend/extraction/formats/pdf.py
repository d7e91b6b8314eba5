"""PDF, page by page; its text has lines but no headings."""

import re
import zlib
from collections.abc import Iterator
from io import BytesIO

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from backend.extraction.domain.blocks import Block
from backend.extraction.formats.text import MALFORMED, paragraphs_of, storable
from shared.errors import InvalidRequest, PayloadTooLarge

MAX_PAGES = 5000

_MALFORMED = (*MALFORMED, PyPdfError, ArithmeticError, NotImplementedError, OSError, zlib.error)

_CJK = "\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60"
_WRAP_IN_CJK = re.compile(rf"(?<=[{_CJK}])[^\S\n]*\n(?=[{_CJK}])")
_WRAP = re.compile(r"(?<=\S)[^\S\n]*\n(?=\S)")


def read_pdf(body: bytes) -> list[Block]:
    """Return the paragraphs of all pages, lines joined."""
    try:
        return [block for text in _page_texts(body) for block in paragraphs_of(_unwrap(text))]
    except _MALFORMED as error:
        raise InvalidRequest("The PDF cannot be read; it must not be damaged.", param="body") from error


def _page_texts(body: bytes) -> Iterator[str]:
    reader = PdfReader(BytesIO(body))
    if reader.is_encrypted:
        raise InvalidRequest("The PDF must not be encrypted.", param="body")
    if len(reader.pages) > MAX_PAGES:
        raise PayloadTooLarge(f"The PDF must have at most {MAX_PAGES} pages.", param="body")
    for page in reader.pages:
        yield storable(page.extract_text())


def _unwrap(text: str) -> str:
    return _WRAP.sub(" ", _WRAP_IN_CJK.sub("", text))
