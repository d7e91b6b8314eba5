"""PPTX, slide by slide, hidden ones too, with their notes."""

from collections.abc import Iterable, Iterator
from functools import partial
from io import BytesIO
from itertools import product
from typing import Any

from pptx import Presentation
from pptx.exc import PythonPptxError
from pptx.shapes.autoshape import Shape
from pptx.shapes.base import BaseShape
from pptx.shapes.graphfrm import GraphicFrame
from pptx.shapes.group import GroupShape
from pptx.shapes.picture import Picture as PictureShape
from pptx.slide import Slide
from pptx.table import Table

from backend.extraction.domain.blocks import Block, Heading, Note, Paragraph, put_at
from backend.extraction.domain.media_types import PPTX
from backend.extraction.formats.archives import read_archive
from backend.extraction.formats.charts import read_chart, read_diagram
from backend.extraction.formats.office_xml import name_of, parse_part, value
from backend.extraction.formats.pictures.files import picture_in_document
from backend.extraction.formats.tables import Cell, CellBudget, table_rows
from backend.extraction.formats.text import MALFORMED, storable
from shared.errors import InvalidRequest
from shared.models.values import Place

MAX_GROUP_DEPTH = 50
_REFERENCES = {"c:chart": "r:id", "dgm:relIds": "r:dm"}


def read_pptx(body: bytes) -> Iterator[Block]:
    """Yield each slide as a heading of its number and title, its texts and tables, and its notes under a heading."""
    return read_archive(body, PPTX, _slides, (PythonPptxError,))


def _slides(file: BytesIO) -> Iterator[Block]:
    budget = CellBudget("PPTX")
    for number, slide in enumerate(Presentation(file).slides, 1):
        yield from put_at(Place(slide=number), _read_safely(slide, number, budget))


def _read_safely(slide: Slide, number: int, budget: CellBudget) -> Iterator[Block]:
    """Read a slide up to where it is damaged."""
    try:
        yield from _slide(slide, number, budget)
    except (PythonPptxError, *MALFORMED):
        yield Note(text=f"Slide {number} is damaged: what stood behind its last text here was left out.")


def _slide(slide: Slide, number: int, budget: CellBudget) -> Iterator[Block]:
    title = next((each for each in (slide.shapes.title,) if each is not None and each.has_text_frame), None)
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
        yield from table_rows(_rows(shape.table, budget))
    elif isinstance(shape, GraphicFrame):
        yield from _read_drawing(shape)
    elif isinstance(shape, Shape) and shape.has_text_frame:
        yield _text(shape.text_frame.text)
    elif isinstance(shape, PictureShape):
        yield picture_in_document(partial(_picture_bytes, shape))


def _picture_bytes(shape: PictureShape) -> bytes:
    untyped: Any = shape
    part = untyped.part.related_part(untyped._element.blip_rId)  # noqa: SLF001 (the library parses the file otherwise)
    return part.blob


def _read_drawing(shape: GraphicFrame) -> Iterator[Block]:
    """Yield what a chart or diagram says."""
    untyped: Any = shape
    for element in untyped.element.iter():
        name = _REFERENCES.get(name_of(element.tag))
        part = shape.part.rels.get(value(element, name) or "") if name else None
        root = parse_part(part.target_part.blob) if part is not None and not part.is_external else None
        if root is not None:
            yield from read_chart(root) if name == "r:id" else read_diagram(root)


def _rows(table: Table, budget: CellBudget) -> Iterator[list[Cell]]:
    """Yield the texts of the cells: one that goes over several columns once, over several rows in each of them."""
    merged = dict[tuple[int, int], Cell]()
    for down in range(len(table.rows)):
        cells = list(table.rows[down].cells)
        budget.take(len(cells))
        texts = list[Cell]()
        for across, cell in enumerate(cells):
            if cell.is_merge_origin:
                covered = product(range(cell.span_height), range(cell.span_width))
                merged |= {(down + y, across + x): None if x else cell.text for y, x in covered}
            texts.append(merged.get((down, across), cell.text))
        yield texts


def _notes(slide: Slide) -> Iterator[Block]:
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if frame is not None and frame.text.strip():
        yield Heading(level=2, text="Notes")
        yield _text(frame.text)


def _text(text: str) -> Paragraph:
    """Return a text whose line breaks, which the library gives as vertical tabs, are line ends."""
    return Paragraph(text=storable(text.replace("\v", "\n")))
