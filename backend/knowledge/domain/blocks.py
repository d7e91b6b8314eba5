"""A document without its format: headings and paragraphs in reading order."""

from shared.models.values import Value


class Heading(Value):
    """A heading; level 1 is the outermost."""

    level: int
    text: str


class Paragraph(Value):
    """Running text, a list, a table or code, as one piece."""

    text: str


Block = Heading | Paragraph
