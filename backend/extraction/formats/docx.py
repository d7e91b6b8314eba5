"""DOCX: headings by their styles, tables as rows of cells."""

import re
from collections.abc import Iterator
from io import BytesIO

from docx import Document
from docx.opc.exceptions import OpcError
from docx.table import Table
from docx.text.paragraph import Paragraph as DocxParagraph

from backend.extraction.domain.blocks import Block, Heading, Paragraph
from backend.extraction.domain.media_types import DOCX
from backend.extraction.formats.archives import read_archive
from backend.extraction.formats.text import storable

_HEADING_STYLE = re.compile(r"heading (\d)", re.IGNORECASE)


def read_docx(body: bytes) -> Iterator[Block]:
    """Yield headings, paragraphs and tables in their order."""
    return read_archive(body, DOCX, _blocks, (OpcError,))


def _blocks(file: BytesIO) -> Iterator[Block]:
    for part in Document(file).iter_inner_content():
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
