"""PPTX, slide by slide, hidden ones too, with their notes."""

from collections.abc import Iterable, Iterator
from io import BytesIO

from pptx import Presentation
from pptx.exc import PythonPptxError
from pptx.shapes.autoshape import Shape
from pptx.shapes.base import BaseShape
from pptx.shapes.graphfrm import GraphicFrame
from pptx.shapes.group import GroupShape
from pptx.slide import Slide

from backend.extraction.domain.blocks import Block, Heading, Paragraph
from backend.extraction.domain.media_types import PPTX
from backend.extraction.formats.archives import read_archive
from backend.extraction.formats.tables import CellBudget, table_rows
from backend.extraction.formats.text import storable
from shared.errors import InvalidRequest

MAX_GROUP_DEPTH = 50


def read_pptx(body: bytes) -> Iterator[Block]:
    """Yield each slide as a heading of its number and title, its texts and tables, and its notes under a heading."""
    return read_archive(body, PPTX, _slides, (PythonPptxError,))


def _slides(file: BytesIO) -> Iterator[Block]:
    budget = CellBudget("PPTX")
    for number, slide in enumerate(Presentation(file).slides, 1):
        title = slide.shapes.title
        text = " ".join(storable(title.text_frame.text).split()) if title is not None else ""
        yield Heading(level=1, text=f"Slide {number}: {text}" if text else f"Slide {number}")
        for shape in _flat(slide.shapes):
            if title is None or shape.shape_id != title.shape_id:
                yield from _shape_blocks(shape, budget)
        yield from _notes(slide)


def _flat(shapes: Iterable[BaseShape], depth: int = 0) -> Iterator[BaseShape]:
    if depth > MAX_GROUP_DEPTH:
        raise InvalidRequest(f"The PPTX holds groups nested more than {MAX_GROUP_DEPTH} deep.", param="body")
    for shape in shapes:
        if isinstance(shape, GroupShape):
            yield from _flat(shape.shapes, depth + 1)
        else:
            yield shape


def _shape_blocks(shape: BaseShape, budget: CellBudget) -> Iterator[Block]:
    if isinstance(shape, GraphicFrame) and shape.has_table:
        for row in (rows := shape.table.rows):
            budget.take(len(row.cells))
        yield from table_rows([cell.text for cell in row.cells] for row in rows)
    elif isinstance(shape, Shape) and shape.has_text_frame:
        yield _text(shape.text_frame.text)


def _notes(slide: Slide) -> Iterator[Block]:
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if frame is not None and frame.text.strip():
        yield Heading(level=2, text="Notes")
        yield _text(frame.text)


def _text(text: str) -> Paragraph:
    """Return a text whose line breaks, which the library gives as vertical tabs, are line ends."""
    return Paragraph(text=storable(text.replace("\v", "\n")))
