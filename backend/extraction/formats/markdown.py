"""Markdown: headings are separated from text; the text itself stays source."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest

from markdown_it import MarkdownIt
from markdown_it.token import Token

from backend.extraction.domain.blocks import Block, Heading, Paragraph
from backend.extraction.formats.tables import table_rows
from backend.extraction.formats.text import decode

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)

# Documents are parsed into blocks only; inline markup is parsed in headings alone.
_BLOCKS = MarkdownIt("commonmark").enable("table").disable("inline")
_INLINE = MarkdownIt("commonmark")

MAX_HEADING_SOURCE_CHARACTERS = 4000
"""A longer heading stays source: the parser's time grows with the square of the number of brackets in a line."""


def read_markdown(body: bytes) -> list[Block]:
    """Return headings as plain text and all between them as source."""
    text, notes = decode(body)
    front_matter = _FRONT_MATTER.match(text)
    before: list[Block] = [Paragraph(text=front_matter.group(1))] if front_matter else []
    return [*before, *_blocks(text[front_matter.end() :] if front_matter else text), *notes]


def _blocks(text: str) -> Iterator[Block]:
    """Walk the outermost blocks; lines that belong to none, such as link definitions, are kept too."""
    lines = text.split("\n")
    done = 0
    tokens = _BLOCKS.parse(text)
    for place, (token, following) in enumerate(zip_longest(tokens, tokens[1:])):
        if token.level > 0 or token.nesting < 0 or token.map is None:
            continue
        start, end = token.map
        yield Paragraph(text="\n".join(lines[done:start]))
        if token.type == "heading_open" and following is not None:
            yield Heading(level=int(token.tag[1:]), text=_plain(following))
        elif token.type == "table_open":
            yield from table_rows(_rows(islice(tokens, place, None)), header_rows=1)
        else:
            yield Paragraph(text="\n".join(lines[start:end]).rstrip("\n"))
        done = end
    yield Paragraph(text="\n".join(lines[done:]))


def _rows(tokens: Iterable[Token]) -> Iterator[list[str]]:
    """Yield the cells of the table that these tokens begin with, as source."""
    row = list[str]()
    for token in tokens:
        match token.type:
            case "inline":
                row.append(token.content)
            case "tr_close":
                yield row
                row = []
            case "table_close":
                return
            case _:
                pass


def _plain(heading: Token) -> str:
    if len(heading.content) > MAX_HEADING_SOURCE_CHARACTERS:
        return heading.content
    inline = _INLINE.parseInline(heading.content)
    children = inline[0].children if inline else None
    plain = "".join(" " if child.type in ("softbreak", "hardbreak") else child.content for child in children or ())
    return plain.strip() or heading.content
