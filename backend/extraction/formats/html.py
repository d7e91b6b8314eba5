"""HTML: the visible text, block by block."""

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from backend.extraction.domain.blocks import Block, Heading, Note, Paragraph
from backend.extraction.formats.tables import Cell, CellBudget, table_rows
from backend.extraction.formats.text import decode, storable
from shared.errors import InvalidRequest

_UNSEEN = ("script", "style", "template", "noscript", "svg", "iframe", "object")
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    {
        *_HEADINGS,
        *("address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "dialog", "div", "dl"),
        *("dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "li", "main", "nav", "ol"),
        *("option", "p", "pre", "section", "select", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul"),
    }
)
_CELLS = ("td", "th")
_SHOWN_INPUTS = frozenset(("text", "search", "email", "tel", "url", "number", "date", "time", "submit", "button"))
_LAYOUT = "table, h1, h2, h3, h4, h5, h6, pre, section, article, form, nav, td p + p, td div + div, td li"
"""What stands in the cells of tables that lay out a page, and not in those of data."""

_MAX_ANCESTORS = 100
"""How many ancestors are searched for the block of a text; deeper nesting means nothing to a reader."""

_HIDES = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_MAX_SPAN = 1000
_DECLARED = re.compile(rb"<(?:meta\b[^>]*?\bcharset|\?xml\b[^>]*?\bencoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_DECLARED_BYTES = 4096

_WHITE_SPACE = re.compile(r"\s+")

MAX_DEPTH = 1000
"""The parser searches all open elements at each block: its time grows with depth times length."""
_TAG = re.compile(r"<(/?)([a-z][a-z0-9-]*)", re.IGNORECASE)
_NEVER_DEEP = frozenset(
    {
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"),
        *("p", "li", "dt", "dd", "tr", "td", "th", "tbody", "thead", "tfoot", "option", "optgroup", "colgroup"),
    }
)
"""Void elements, and elements that end implicitly where the next of their kind begins."""

MAX_COMPARED_ATTRIBUTES = 300_000_000
"""The parser compares each attribute of an element with those before it; so many comparisons take about a second."""
_ATTRIBUTE = r"[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:\"[^\"]*+\"?|'[^']*+'?|[^\s>]*+))?+"
_ONE_ATTRIBUTE = re.compile(_ATTRIBUTE)
_ATTRIBUTES = re.compile(rf"<[a-z][^\s/>]*+((?:{_ATTRIBUTE})*+)", re.IGNORECASE)
_SHORT = 64
"""A tag shorter than this has too few attributes to count."""


def read_html(body: bytes) -> list[Block]:
    """Return headings and the text of each block element, under the page's title where it has no h1."""
    page, notes = decode(body, _find_declaration(body))
    _check_depth(page)
    _check_attributes(page)
    tree = LexborHTMLParser(page)
    tree.strip_tags(list(_UNSEEN))
    hidden = _take_hidden(tree)
    title = tree.css_first("title")
    titled: list[Block] = []
    if title is not None and tree.css_first("h1") is None:
        titled = [Heading(level=1, text=_one_line(title.text()))]
    if hidden:
        notes.append(Note(text=f"Hidden texts that were left out: {hidden}."))
    return [*titled, *(_blocks(tree.body) if tree.body is not None else ()), *notes]


def _take_hidden(tree: LexborHTMLParser) -> int:
    """Take out what no browser shows, inner elements first; return how many texts it was."""
    count = 0
    for selector in ("[hidden]", "[style]"):
        for node in reversed(tree.css(selector)):
            if selector == "[hidden]" or _HIDES.search(node.attributes.get("style") or ""):
                count += bool(node.text().strip())
                node.decompose()
    return count


def _find_declaration(body: bytes) -> str | None:
    found = _DECLARED.search(body[:_DECLARED_BYTES])
    return found[1].decode("ascii") if found else None


def _check_depth(page: str) -> None:
    depth = 0
    for end, name in _TAG.findall(page):
        if name.lower() not in _NEVER_DEEP:
            depth = max(0, depth - 1) if end else depth + 1
        if depth > MAX_DEPTH:
            raise InvalidRequest(f"The page is nested more than {MAX_DEPTH} elements deep.", param="body")


def _check_attributes(page: str) -> None:
    compared = 0
    for tag in _ATTRIBUTES.finditer(page):
        start, end = tag.span(1)
        if end - start > _SHORT:
            compared += sum(1 for _ in _ONE_ATTRIBUTE.finditer(page, start, end)) ** 2
        if compared > MAX_COMPARED_ATTRIBUTES:
            raise InvalidRequest("An element of the page has too many attributes.", param="body")


def _blocks(body: LexborNode) -> Iterator[Block]:
    """Join the texts that lie in one block without another block between them."""
    owner, texts = body, list[str]()
    budget, in_tables = CellBudget("page"), set[int]()
    for node in body.traverse(include_text=True):
        if node.mem_id in in_tables:
            continue
        if node.tag == "table" and (rows := _rows_of(node)):
            yield _block(owner, texts)
            owner, texts = body, []
            in_tables |= {inner.mem_id for inner in node.traverse(include_text=True)}
            yield from (_block(each, [_text_of(each)]) for each in node.css("caption"))
            yield from _table(rows, budget)
        elif node.tag in _BLOCKS or node.tag == "-text":
            block = _block_of(node)
            if block.mem_id != owner.mem_id:
                yield _block(owner, texts)
                owner, texts = block, []
        texts += _show_text(node)
    yield _block(owner, texts)


def _show_text(node: LexborNode) -> list[str]:
    match node.tag:
        case "-text":
            return [node.text_content or ""]
        case "br":
            return ["\n"]
        case "td" | "th":
            return [" | "]
        case "img" if words := (node.attributes.get("alt") or "").strip():
            return [f" {words} "]
        case "input" if (node.attributes.get("type") or "text").lower() in _SHOWN_INPUTS:
            return [f" {node.attributes.get('value') or ''} "]
        case _:
            return []


class _TableRow(NamedTuple):
    cells: list[LexborNode]
    is_head: bool


def _rows_of(table: LexborNode) -> list[_TableRow]:
    """Return the rows of a table; none of one that lays out a page: with blocks in its cells, or one column."""
    if any(node.mem_id != table.mem_id for node in table.css(_LAYOUT)):
        return []
    heads = {row.mem_id for row in table.css("thead tr")}
    rows = list[_TableRow]()
    for row in table.css("tr"):
        cells = [cell for cell in row.iter() if cell.tag in _CELLS]
        is_named = bool(cells) and all(cell.tag == "th" for cell in cells)
        rows.append(_TableRow(cells, is_head=is_named or row.mem_id in heads))
    return rows if max((len(row.cells) for row in rows), default=0) > 1 else []


def _table(rows: list[_TableRow], budget: CellBudget) -> Iterator[Paragraph]:
    heads = sum(1 for _ in takewhile(lambda row: row.is_head, rows))
    yield from table_rows(_fill((row.cells for row in rows), budget), heads)


def _fill(rows: Iterable[list[LexborNode]], budget: CellBudget) -> Iterator[list[Cell]]:
    """Yield the texts of the cells; those that go over several rows stand in each of them."""
    waiting = dict[int, tuple[int, Cell]]()
    for cells in rows:
        row = list[Cell]()
        for cell in cells:
            _take_waiting(row, waiting)
            text = _one_line(_text_of(cell))
            for place in range(_span(cell, "colspan")):
                if (down := _span(cell, "rowspan")) > 1:
                    waiting[len(row)] = (down - 1, None if place else text)
                row.append(None if place else text)
        _take_waiting(row, waiting)
        budget.take(len(row))
        yield row


def _take_waiting(row: list[Cell], waiting: dict[int, tuple[int, Cell]]) -> None:
    """Add the cells that come down from the rows above, as long as there is one in the next column."""
    while len(row) in waiting:
        left, text = waiting.pop(len(row))
        if left > 1:
            waiting[len(row)] = (left - 1, text)
        row.append(text)


def _text_of(cell: LexborNode) -> str:
    texts = (text for node in cell.traverse(include_text=True) if node.tag not in _CELLS for text in _show_text(node))
    return storable("".join(texts))


def _span(cell: LexborNode, name: str) -> int:
    said = cell.attributes.get(name) or ""
    return min(max(int(said), 1), _MAX_SPAN) if said.isascii() and said.isdecimal() else 1


def _block_of(node: LexborNode) -> LexborNode:
    here: LexborNode | None = node
    for _ in range(_MAX_ANCESTORS):
        if here is None or here.tag in _BLOCKS:
            break
        here = here.parent
    return here if here is not None else node


def _block(owner: LexborNode, texts: list[str]) -> Block:
    text = storable("".join(texts))
    level = _HEADINGS.get(owner.tag or "")
    if level is not None:
        return Heading(level=level, text=_one_line(text))
    if owner.tag == "pre":
        return Paragraph(text=text)
    return Paragraph(text="\n".join(_one_line(line) for line in _lines(texts)).removeprefix("| "))


def _lines(texts: list[str]) -> list[str]:
    """Split at `br` elements, which are texts of a line feed alone, not at line feeds of the source."""
    lines = [""]
    for text in texts:
        if text == "\n":
            lines.append("")
        else:
            lines[-1] += storable(text)
    return lines


def _one_line(text: str) -> str:
    return _WHITE_SPACE.sub(" ", text).strip()
