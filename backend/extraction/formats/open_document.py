"""OpenDocument texts, sheets and presentations (ISO/IEC 26300), which are archives with all text in one part."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from io import BytesIO
from xml.etree.ElementTree import Element
from zipfile import ZipFile

from backend.extraction.domain.chunking import Block, Heading, Note, Paragraph
from backend.extraction.domain.media_types import ODP, ODS, ODT
from backend.extraction.formats.archives import read_archive
from backend.extraction.formats.office_xml import Package, first_child, name_of, parse_part, value
from backend.extraction.formats.tables import MAX_NAME_CHARACTERS, Cell, CellBudget, table_rows
from backend.extraction.formats.text import storable

_BREAKS = {"text:tab": "\t", "text:line-break": "\n"}
_APART = ("text:note", "office:annotation")
_SILENT = ("text:tracked-changes", "text:sequence-decls", "text:note-citation", "office:forms", "svg:desc")
_MAX_SPACES, _MAX_REPEATED = 100, 1000
_CELLS = ("table:table-cell", "table:covered-table-cell")


def read_document(body: bytes) -> Iterator[Block]:
    """Yield headings, paragraphs and rows of tables, notes and comments behind their paragraph."""
    return read_archive(body, ODT, partial(_read, of_what="ODT"))


def read_sheets(body: bytes) -> Iterator[Block]:
    """Yield each sheet as a heading of its name and its rows, with the values as they are seen."""
    return read_archive(body, ODS, partial(_read, of_what="ODS"))


def read_slides(body: bytes) -> Iterator[Block]:
    """Yield each slide as a heading of its number, its texts, and its notes."""
    return read_archive(body, ODP, partial(_read, of_what="ODP"))


def _read(file: BytesIO, of_what: str) -> Iterator[Block]:
    with ZipFile(file) as archive, Package(archive).open("content.xml") as part:
        root = parse_part(part.read())
    body = first_child(root, "office:body")
    if body is None:
        raise ValueError("an OpenDocument file without a body")
    walk = _Walk(of_what)
    yield from walk.blocks(body)
    if walk.pictures:
        yield Note(text=f"Pictures that were not read: {walk.pictures}.")


class _Walk:
    """Goes through the text of a document."""

    def __init__(self, of_what: str) -> None:
        self._budget = CellBudget(of_what)
        self._is_of_sheets = of_what == "ODS"
        self._slides = 0
        self.pictures = 0
        self._readers: Mapping[str, Callable[[Element], Iterator[Block]]] = {
            "text:h": lambda element: self._paragraph(element, int(value(element, "text:outline-level") or 1)),
            "text:p": lambda element: self._paragraph(element, None),
            "text:list-item": self._item,
            "table:table": self._table,
            "draw:page": self._slide,
            "draw:image": self._picture,
            "presentation:notes": self._speaker_notes,
        }

    def blocks(self, container: Iterable[Element]) -> Iterator[Block]:
        """Read what stands below each other."""
        for element in container:
            name = name_of(element.tag)
            if name not in _SILENT:
                yield from self._readers.get(name, self.blocks)(element)

    def _slide(self, element: Element) -> Iterator[Block]:
        self._slides += 1
        yield Heading(level=1, text=f"Slide {self._slides}")
        yield from self.blocks(element)

    def _speaker_notes(self, element: Element) -> Iterator[Block]:
        yield Heading(level=2, text="Notes")
        yield from self.blocks(element)

    def _picture(self, _: Element) -> Iterator[Block]:
        self.pictures += 1
        return iter(())

    def _item(self, element: Element) -> Iterator[Block]:
        for place, block in enumerate(self.blocks(element)):
            is_first = not place and isinstance(block, Paragraph) and not block.text.startswith("- ")
            yield Paragraph(text=f"- {block.text}") if is_first and block.text else block

    def _paragraph(self, element: Element, level: int | None) -> Iterator[Block]:
        apart = list[Element]()
        text = storable(self._line(element, apart))
        yield Paragraph(text=text) if level is None else Heading(level=level, text=text)
        for each in apart:
            if name_of(each.tag) in _APART:
                said = " ".join(block.text.strip() for block in self.blocks(each) if not isinstance(block, Note))
                kind = "Footnote" if name_of(each.tag) == "text:note" else "Comment"
                yield Paragraph(text=f"{kind}: {said}")
            else:
                yield from self.blocks([each])

    def _line(self, element: Element, apart: list[Element]) -> str:
        parts = [element.text or ""]
        for child in element:
            name = name_of(child.tag)
            if name == "text:s":
                parts.append(" " * min(int(value(child, "text:c") or 1), _MAX_SPACES))
            elif name in _APART or name.startswith(("draw:", "table:")):
                apart.append(child)
            elif name not in _SILENT:
                parts.append(_BREAKS.get(name) or self._line(child, apart))
            parts.append(child.tail or "")
        return "".join(parts)

    def _table(self, table: Element) -> Iterator[Block]:
        rows = list(table_rows(self._rows(table)))
        if self._is_of_sheets and rows:
            yield Heading(level=1, text=storable(value(table, "table:name") or ""))
        yield from rows

    def _rows(self, table: Element) -> Iterator[list[Cell]]:
        above: list[Cell] = []
        for row in _flat(table, "table:table-row"):
            cells = list[Cell]()
            for cell in _flat(row, *_CELLS):
                times = int(value(cell, "table:number-columns-repeated") or 1)
                text = self._cell(cell, above, len(cells))
                is_filler = text == "" and times > _MAX_REPEATED
                cells += [text] * (0 if is_filler else min(times, _MAX_REPEATED))
            self._budget.take(max(1, len(cells)))
            times = int(value(row, "table:number-rows-repeated") or 1)
            yield from [cells] * (min(times, _MAX_REPEATED) if any(cells) else 1)
            above = cells

    def _cell(self, cell: Element, above: list[Cell], place: int) -> Cell:
        """Return the text of a cell; one that another covers goes on, or has the short text above it."""
        text = "\n".join(block.text for block in self.blocks(cell) if not isinstance(block, Note)).strip()
        if name_of(cell.tag) == _CELLS[0] or text:
            return text
        over = (above[place] or "") if place < len(above) else ""
        return over if over and len(over) <= MAX_NAME_CHARACTERS else None


def _flat(container: Element, *names: str) -> Iterator[Element]:
    """Yield the elements with these names, also those in groups and headers, but none of tables inside."""
    for element in container:
        name = name_of(element.tag)
        if name in names:
            yield element
        elif name.startswith("table:") and name != "table:table":
            yield from _flat(element, *names)
