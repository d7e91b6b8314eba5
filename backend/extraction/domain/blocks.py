"""A document without its format: blocks in reading order."""

from shared.models.values import Value


class Heading(Value):
    """A heading of a document; level 1 is the outermost."""

    level: int
    text: str


class Paragraph(Value):
    """Running text, a list, a table or code, as one block of a document."""

    text: str


Block = Heading | Paragraph
"""A part of a document without its format; a document is read as blocks in reading order."""
