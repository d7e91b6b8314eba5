"""HTML: the visible text, block by block."""

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from backend.extraction.domain.blocks import Block, Heading, Paragraph
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
_MAX_ANCESTORS = 100
"""How many ancestors are searched for the block of a text; deeper nesting means nothing to a reader."""

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
    page = decode(body)
    _check_depth(page)
    _check_attributes(page)
    tree = LexborHTMLParser(page)
    tree.strip_tags(list(_UNSEEN))
    title = tree.css_first("title")
    titled: list[Block] = []
    if title is not None and tree.css_first("h1") is None:
        titled = [Heading(level=1, text=_one_line(title.text()))]
    return [*titled, *(_blocks(tree.body) if tree.body is not None else ())]


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
    for node in body.traverse(include_text=True):
        if node.tag == "br":
            texts.append("\n")
        elif node.tag in _CELLS:
            texts.append(" | ")
        elif node.tag == "-text" or node.tag in _BLOCKS:
            block = _block_of(node)
            if block.mem_id != owner.mem_id:
                yield _block(owner, texts)
                owner, texts = block, []
            if node.tag == "-text":
                texts.append(node.text_content or "")
    yield _block(owner, texts)


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
