"""OpenDocument texts, sheets and presentations (ISO/IEC 26300), which are archives with all text in one part."""

import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from io import BytesIO
from xml.etree.ElementTree import Element
from zipfile import ZipFile

from backend.extraction.domain.blocks import Block, Heading, Note, Paragraph
from backend.extraction.domain.media_types import ODP, ODS, ODT
from backend.extraction.formats.archives import read_archive
from backend.extraction.formats.office_xml import Package, first_child, is_named, name_of, parse_part, value
from backend.extraction.formats.tables import MAX_NAME_CHARACTERS, Cell, CellBudget, table_rows
from backend.extraction.formats.text import storable

_BREAKS = {"text:tab": "\t", "text:line-break": "\n"}
_APART = ("text:note", "office:annotation")
_SILENT = ("text:tracked-changes", "text:sequence-decls", "text:note-citation", "office:forms", "svg:desc")
_HIDDEN = ("text:hidden-text", "text:hidden-paragraph")
_STYLED = ("text:span", "text:p", "text:h")
_MAX_DEPTH = 3
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
    with ZipFile(file) as archive:
        package = Package(archive)
        with package.open("content.xml") as part:
            root = parse_part(part.read())
        body = first_child(root, "office:body")
        if body is None:
            raise ValueError("an OpenDocument file without a body")
        styles = package.read("styles.xml")
        walk = _Walk(of_what, package, _find_hiding_styles(root, styles))
        yield from walk.margins(styles, "style:header") if of_what == "ODT" else ()
        yield from walk.blocks(body)
        yield from walk.margins(styles, "style:footer") if of_what == "ODT" else ()
    for what, count in walk.left_out.items():
        yield Note(text=f"{what}: {count}.")


def _find_hiding_styles(*roots: Element | None) -> frozenset[str]:
    """Return the names of the styles whose text is not shown."""
    styles = (each for root in roots if root is not None for each in root.iter() if is_named(each, "style:style"))
    hides = (each for each in styles if value(first_child(each, "style:text-properties"), "text:display") == "none")
    return frozenset(value(each, "style:name") or "" for each in hides)


class _Walk:
    """Goes through the text of a document."""

    def __init__(self, of_what: str, package: Package, hiding: frozenset[str]) -> None:
        self._package = package
        self._hiding = hiding
        self._budget = CellBudget(of_what)
        self._is_of_sheets = of_what == "ODS"
        self._slides = 0
        self._depth = 0
        self.left_out = Counter[str]()
        self._readers: Mapping[str, Callable[[Element], Iterator[Block]]] = {
            "text:h": lambda element: self._paragraph(element, int(value(element, "text:outline-level") or 1)),
            "text:p": lambda element: self._paragraph(element, None),
            "text:list-item": self._item,
            "table:table": self._table,
            "draw:page": self._slide,
            "draw:image": self._picture,
            "draw:frame": self._frame,
            "draw:object": self._object,
            "presentation:notes": self._speaker_notes,
        }

    def blocks(self, container: Iterable[Element]) -> Iterator[Block]:
        """Read what stands below each other."""
        for element in container:
            name = name_of(element.tag)
            if name not in _SILENT and not self._is_hidden(element, name):
                yield from self._readers.get(name, self.blocks)(element)

    def margins(self, styles: Element | None, kind: str) -> Iterator[Block]:
        """Read the headers or footers, each text once: the kinds of pages repeat them."""
        said = set[str]()
        for element in styles.iter() if styles is not None else ():
            for block in self.blocks(element) if name_of(element.tag).removesuffix("-left") == kind else ():
                if block.text not in said:
                    said.add(block.text)
                    yield Paragraph(text=block.text)

    def _is_hidden(self, element: Element, name: str) -> bool:
        is_hidden = (
            name in _HIDDEN
            or (name == "text:section" and value(element, "text:display") == "none")
            or (name in _STYLED and bool(self._hiding) and value(element, "text:style-name") in self._hiding)
        )
        if is_hidden and (value(element, "text:string-value") or any(each.text for each in element.iter())):
            self.left_out["Hidden texts that were left out"] += 1
        return is_hidden

    def _slide(self, element: Element) -> Iterator[Block]:
        self._slides += 1
        yield Heading(level=1, text=f"Slide {self._slides}")
        yield from self.blocks(element)

    def _speaker_notes(self, element: Element) -> Iterator[Block]:
        said = list(self.blocks(element))
        yield from [Heading(level=2, text="Notes"), *said] if any(block.text.strip() for block in said) else said

    def _frame(self, frame: Element) -> Iterator[Block]:
        """Read what is framed; the picture beside a chart shows the same."""
        has_object = first_child(frame, "draw:object") is not None
        yield from self.blocks(each for each in frame if not (has_object and is_named(each, "draw:image")))

    def _picture(self, _: Element) -> Iterator[Block]:
        self.left_out["Pictures that were not read"] += 1
        return iter(())

    def _object(self, element: Element) -> Iterator[Block]:
        """Read a chart, or another document in this one."""
        place = posixpath.normpath(value(element, "xlink:href") or "")
        root = self._package.read(f"{place}/content.xml")
        if root is None or self._depth >= _MAX_DEPTH:
            self.left_out["Embedded objects that were not read"] += 1
            return
        self._depth += 1
        yield from self.blocks(root)
        self._depth -= 1

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
            elif name not in _SILENT and not self._is_hidden(child, name):
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
            times = int(value(row, "table:number-rows-repeated") or 1)
            times = min(times, _MAX_REPEATED) if any(cells) else 1
            self._budget.take(max(1, len(cells) * times))
            yield from [cells] * times
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
