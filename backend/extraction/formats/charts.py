"""Charts and diagrams of office documents (DrawingML), by the values that are stored with them."""

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from backend.extraction.domain.blocks import Block, Paragraph
from backend.extraction.formats.office_xml import Package, Relationship, is_named, name_of, value
from backend.extraction.formats.tables import table_rows
from backend.extraction.formats.text import storable

_MAX_POINTS = 100_000
_BINARY = re.compile(r"-?\d+\.\d{1,17}")
_NAMES = ("c:cat", "c:xVal")
_VALUES = ("c:val", "c:yVal", "c:bubbleSize")
KINDS = ("chart", "diagramData")
"""The kinds under which documents refer to these parts."""


def read_drawing(package: Package, related: Relationship) -> Iterator[Block]:
    """Yield what a part of one of `KINDS` says; nothing where it is damaged."""
    root = package.read(related.part)
    if root is not None:
        yield from read_chart(root) if related.kind == "chart" else read_diagram(root)


def read_chart(root: Element) -> Iterator[Block]:
    """Yield the titles of a chart and of its axes, and a row for each category with the values of all series."""
    titles = [text for title in root.iter() if is_named(title, "c:title") and (text := _text(title))]
    yield Paragraph(text=": ".join(("Chart", *titles[:1])) + "".join(f"\nAxis: {title}" for title in titles[1:]))
    series = [each for each in root.iter() if is_named(each, "c:ser")]
    columns = [_series(each) for each in series]
    names = next((names for names, _ in columns if names), dict[int, str]())
    header = ["Category", *(_name(each) or f"Series {number}" for number, each in enumerate(series, 1))]
    places = sorted({place for _, values in columns for place in values} | set(names))
    rows = ([names.get(place, ""), *(values.get(place, "") for _, values in columns)] for place in places)
    yield from table_rows([header, *rows], 1) if places else ()


def read_diagram(root: Element) -> Iterator[Block]:
    """Yield the texts of a diagram, in the order in which they were written."""
    texts = (_text(point) for point in root.iter() if is_named(point, "dgm:pt"))
    yield Paragraph(text="\n".join(text for text in texts if text))


def _text(element: Element) -> str:
    """Return the text of a title, or of a point of a diagram, whether it is written or taken from a cell."""
    written = ((each.text or "") for each in element.iter() if name_of(each.tag) in ("a:t", "c:v"))
    return storable(" ".join("".join(written).split()))


def _name(series: Element) -> str:
    return next((_text(each) for each in series if is_named(each, "c:tx")), "")


def _series(series: Element) -> tuple[dict[int, str], dict[int, str]]:
    """Return the names of the categories, and the values, by their places."""
    parts = {name_of(each.tag): each for each in series}
    names = next((_points(parts[name]) for name in _NAMES if name in parts), dict[int, str]())
    return names, next((_points(parts[name]) for name in _VALUES if name in parts), dict[int, str]())


def _show(text: str) -> str:
    """Write a number with the digits that programs compute with; others show how it misses a decimal one."""
    return f"{float(text):.15g}" if _BINARY.fullmatch(text) else text


def _points(element: Element) -> dict[int, str]:
    points = (each for each in element.iter() if is_named(each, "c:pt"))
    found = dict[int, str]()
    for place, point in enumerate(points):
        if place >= _MAX_POINTS:
            break
        written = value(point, "idx") or ""
        key = int(written) if written.isdecimal() else place
        found[key] = " ".join(part for part in (found.get(key), _show(_text(point))) if part)
    return found
