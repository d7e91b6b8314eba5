"""DOCX: headings by their styles, tables as rows of cells."""

import re
import zlib
from collections.abc import Iterator
from io import BytesIO
from zipfile import BadZipFile, ZipFile

from docx import Document
from docx.opc.exceptions import OpcError
from docx.table import Table
from docx.text.paragraph import Paragraph as DocxParagraph

from backend.knowledge.documents.text import storable
from backend.knowledge.domain.knowledge import Block, Heading, Paragraph
from shared.errors import InvalidRequest, PayloadTooLarge

MAX_UNPACKED_BYTES = 200_000_000

_MALFORMED = (
    BadZipFile,
    OpcError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    OSError,
    RecursionError,
    RuntimeError,
    SyntaxError,  # malformed XML
    TypeError,
    ValueError,
    zlib.error,
)
"""Exceptions of zip, XML and the library for malformed files; none of them means a defect of this code."""

_HEADING_STYLE = re.compile(r"heading (\d)", re.IGNORECASE)


def read_docx(body: bytes) -> list[Block]:
    """Return headings, paragraphs and tables in their order."""
    try:
        _check_size(body)
        return list(_blocks(body))
    except _MALFORMED as error:
        raise InvalidRequest(
            "The DOCX cannot be read; it must be neither damaged nor encrypted.", param="body"
        ) from error


def _check_size(body: bytes) -> None:
    """Refuse an archive that would unpack to more than `MAX_UNPACKED_BYTES`."""
    with ZipFile(BytesIO(body)) as archive:
        unpacked_bytes = sum(entry.file_size for entry in archive.infolist())
    if unpacked_bytes > MAX_UNPACKED_BYTES:
        raise PayloadTooLarge(f"The DOCX must unpack to at most {MAX_UNPACKED_BYTES} bytes.", param="body")


def _blocks(body: bytes) -> Iterator[Block]:
    for part in Document(BytesIO(body)).iter_inner_content():
        if isinstance(part, Table):
            yield Paragraph(text="\n".join(_rows(part)))
        else:
            yield _paragraph(part)


def _rows(table: Table) -> Iterator[str]:
    for row in table.rows:
        yield " | ".join(storable(cell.text).replace("\n", " ") for cell in row.cells)


def _paragraph(part: DocxParagraph) -> Block:
    text = storable(part.text)
    style = part.style.name if part.style is not None else None
    if style == "Title":
        return Heading(level=1, text=text)
    heading = _HEADING_STYLE.match(style or "")
    return Heading(level=int(heading.group(1)), text=text) if heading else Paragraph(text=text)
