"""A document without its format: blocks in reading order, which name what they stand for and where."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from shared.models.values import Place


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a document; level 1 is the outermost."""

    level: int
    text: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text, a list, a table or code, as one block of a document; `row` is its row in a sheet."""

    text: str
    place: Place | None = None
    row: int | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """What a reader of the file sees and its text does not hold, or what was left out of it; no text itself."""

    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A page without text, or a picture, whose text an engine may find; until then it is none.

    `draw` makes a JPEG of it, or raises InvalidRequest. Notes call it by its name, such as `Page 3 of 7`; those without
    a name are counted. The heading stands above its text, where it has any.
    """

    draw: Callable[[], bytes]
    name: str = ""
    heading: Heading | None = None
    place: Place | None = None
    text: str = ""


TextBlock = Heading | Paragraph | Note
"""What can be cut, or said, as it is."""

Block = TextBlock | Picture
"""A part of a document without its format; a document is read as blocks in reading order."""


def put_at(place: Place, blocks: Iterable[Block]) -> Iterator[Block]:
    """Say of blocks where they stand: on a page, on a slide."""
    for block in blocks:
        yield block if isinstance(block, Note) else replace(block, place=place)


def under(title: Heading, pictures: Iterable[Block]) -> Iterator[Block]:
    """Put a heading above the text of pictures: it stands there only if they have any."""
    for block in pictures:
        name = f"{title.text}: {block.name}" if isinstance(block, Picture) and block.name else ""
        yield replace(block, heading=title, name=name) if isinstance(block, Picture) else block
