"""DOCX in the order of its XML: paragraphs, headings and tables, with what hangs on them right behind them."""

from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import chain
from xml.etree.ElementTree import Element, ParseError
from zipfile import ZipFile

from backend.extraction.domain.blocks import Block, Heading, Note, Paragraph, Picture
from backend.extraction.domain.media_types import DOCX
from backend.extraction.formats.archives import read_archive
from backend.extraction.formats.charts import KINDS, read_drawing
from backend.extraction.formats.docx.runs import EMBEDDED, HIDDEN, OTHER_FORMAT, Fields, ParagraphText, Story
from backend.extraction.formats.office_xml import (
    DAMAGED,
    Package,
    children_of,
    find_part,
    first_child,
    is_on,
    name_of,
    stream_children,
    value,
)
from backend.extraction.formats.tables import MAX_NAME_CHARACTERS, Cell, CellBudget, table_rows
from backend.extraction.formats.text import MALFORMED, storable

_NOTES = {
    HIDDEN: "Hidden texts that were left out: {}.",
    EMBEDDED: "Embedded objects that were not read: {}.",
    OTHER_FORMAT: "Parts in another format that were not read: {}.",
}
_CUT_OFF = "The document is damaged: what stood behind its last paragraph here was left out."
_PARTLY_DAMAGED = "A damaged paragraph or table was read as plain text."
_KINDS = {"footnote": "Footnote", "endnote": "Endnote", "comment": "Comment"}
_GONE = ("w:del", "w:moveFrom")
_MAX_COLUMNS = 1000


def read_docx(body: bytes) -> Iterator[Block]:
    """Yield the headers once, the body, the footers once, and notes of what was left out."""
    return read_archive(body, DOCX, _read)


def _read(file: BytesIO) -> Iterator[Block]:
    with ZipFile(file) as archive:
        package = Package(archive)
        main_part = find_part(package.relationships(""), "officeDocument") or "word/document.xml"
        story = Story(package, main_part)
        yield from _margins(story, "header")
        story.related_now = story.related
        yield from _body(story, main_part)
        for related in story.related.values():
            yield from read_drawing(package, related) if related.kind in KINDS else ()
        yield from _margins(story, "footer")
        for what, times in story.left_out.items():
            yield Note(text=_NOTES[what].format(times))


def _body(story: Story, main_part: str) -> Iterator[Block]:
    walk = _Walk(story)
    has_begun = False
    try:
        with story.package.open(main_part) as file:
            for element in stream_children(file, "w:body"):
                has_begun = True
                yield from walk.read_safely(element)
    except (ParseError, EOFError, *DAMAGED):
        if not has_begun:
            raise
        yield Note(text=_CUT_OFF)


def _margins(story: Story, kind: str) -> Iterator[Block]:
    """Yield the headers or footers, each text once: sections repeat them."""
    said = set[str]()
    for each in story.related.values():
        if each.kind != kind:
            continue
        story.related_now = story.package.relationships(each.part)
        root, walk = story.package.read(each.part), _Walk(story)
        for block in chain.from_iterable(map(walk.read_safely, root if root is not None else ())):
            if isinstance(block, Picture):
                yield block
            elif block.text.strip() and block.text not in said:
                said.add(block.text)
                yield block if isinstance(block, Note) else Paragraph(text=block.text)


class _Walk:
    """Goes through one part of a document."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._fields = Fields()
        self._budget = CellBudget("DOCX")
        self._is_in_table = False

    def read_safely(self, element: Element) -> Iterator[Block]:
        """Read a paragraph or table, where it is damaged as its bare text."""
        try:
            read = list(self._block(element))
        except (OverflowError, *MALFORMED):
            texts = (each.text or "" for each in element.iter() if name_of(each.tag) in ("w:t", "m:t"))
            read = [Paragraph(text=storable(" ".join(texts))), Note(text=_PARTLY_DAMAGED)]
        yield from read

    def blocks(self, container: Iterable[Element]) -> Iterator[Block]:
        """Read what stands below each other."""
        for element in container:
            yield from self._block(element)

    def _block(self, element: Element) -> Iterator[Block]:
        match name_of(element.tag):
            case "w:p" | "m:oMathPara":
                yield from self._paragraph(element)
            case "w:tbl":
                yield from self._table(element)
            case "mc:AlternateContent":
                yield from self.blocks(next(children_of(element, "mc:Choice", "mc:Fallback"), ()))
            case "w:altChunk":
                self._story.left_out[OTHER_FORMAT] += 1
            case name if name in _GONE or name.endswith("Pr"):
                return
            case _:
                yield from self.blocks(element)

    def _paragraph(self, element: Element) -> Iterator[Block]:
        properties = first_child(element, "w:pPr")
        line = ParagraphText(self._story, self._fields, is_on_page=not self._is_in_table, properties=properties)
        line.take_all(element)
        self._fields.end_instructions()
        text = storable(line.text)
        numbered = self._story.styles.find_list(properties)
        if numbered is not None and text.strip():
            text = f"{self._story.numbering.label(numbered)} {text}".lstrip(" ")
        level = self._story.styles.find_level(properties)
        yield Heading(level=level, text=text) if level is not None and not self._is_in_table else Paragraph(text=text)
        yield from line.pictures
        for box in line.boxes:
            yield from self.blocks(box)
        for kind, note in line.notes:
            said = " ".join(block.text.strip() for block in self.blocks(note) if isinstance(block, Heading | Paragraph))
            author = storable(value(note, "w:author") or "")
            yield Paragraph(text=f"{_KINDS[kind]}{f' by {author}' if author else ''}: {said}")

    def _table(self, table: Element) -> Iterator[Block]:
        rows = [list(_cells_of(row)) for row in _rows_of(table)]
        if all(len(cells) <= 1 for cells in rows):
            # A frame or a list: what stands in it is read as if it stood on the page.
            for cells in rows:
                yield from (block for cell in cells for block in self.blocks(cell))
            return
        is_inner, self._is_in_table = self._is_in_table, True
        nested = list[Block]()
        texts = self._fill(rows, nested)
        said = sum(1 for row in _rows_of(table) if is_on(first_child(row, "w:trPr", "w:tblHeader")))
        yield from table_rows(texts, said)
        self._is_in_table = is_inner
        yield from nested

    def _fill(self, rows: list[list[Element]], nested: list[Block]) -> list[list[Cell]]:
        """Return the texts of the cells; short ones that go over several rows stand in each of them."""
        filled = list[list[Cell]]()
        above: list[Cell] = []
        for cells in rows:
            row: list[Cell] = []
            for cell in cells:
                properties = first_child(cell, "w:tcPr")
                text = self._cell(cell, nested)
                merge = first_child(properties, "w:vMerge")
                if merge is not None and value(merge) != "restart" and not text and len(row) < len(above):
                    text = above[len(row)] or ""
                    text = text if len(text) <= MAX_NAME_CHARACTERS else ""
                width = min(int(value(first_child(properties, "w:gridSpan")) or 1), _MAX_COLUMNS)
                row += [text, *[None] * (width - 1)]
            self._budget.take(len(row))
            filled.append(row)
            above = row
        return filled

    def _cell(self, cell: Element, nested: list[Block]) -> str:
        lines = list[str]()
        for element in _flat(cell, "w:p", "w:tbl", "m:oMathPara"):
            if name_of(element.tag) == "w:tbl":
                nested += self._table(element)
            else:
                for block in self._block(element):
                    if isinstance(block, Picture):
                        nested.append(block)
                    else:
                        lines.append(block.text)
        return "\n".join(lines).strip()


def _rows_of(table: Element) -> Iterator[Element]:
    return (row for row in _flat(table, "w:tr") if first_child(row, "w:trPr", "w:del") is None)


def _cells_of(row: Element) -> Iterator[Element]:
    before = int(value(first_child(row, "w:trPr", "w:gridBefore")) or 0)
    yield from (Element("") for _ in range(min(before, _MAX_COLUMNS)))
    yield from _flat(row, "w:tc")


def _flat(container: Element, *names: str) -> Iterator[Element]:
    """Yield the elements with these names, also those inside content controls and revisions."""
    for element in container:
        name = name_of(element.tag)
        if name in names:
            yield element
        elif name not in _GONE and not name.endswith("Pr"):
            yield from _flat(element, *names)
