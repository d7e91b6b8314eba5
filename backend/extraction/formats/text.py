"""Plain text, and functions that the text formats share."""

import re

from backend.extraction.domain.blocks import Block, Paragraph
from shared.errors import InvalidRequest

_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

MALFORMED = (AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What libraries raise for malformed files; none means a defect of this code. Each format adds those of its library."""


def read_plain_text(body: bytes) -> list[Block]:
    """Return the paragraphs between blank lines."""
    return paragraphs_of(decode(body))


def decode(body: bytes) -> str:
    """Decode UTF-8, with or without a byte order mark; line ends become line feeds.

    Raises:
        InvalidRequest: the bytes are not UTF-8, or hold a NUL.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The text must be UTF-8; it is not at byte {error.start}.", param="body") from None
    if "\x00" in text:
        raise InvalidRequest(
            f"The text must not hold the character U+0000; it does at {text.index(chr(0))}.", param="body"
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def paragraphs_of(text: str) -> list[Block]:
    """Split at blank lines."""
    return [Paragraph(text=part) for part in _BLANK_LINES.split(text) if part.strip()]


def storable(text: str) -> str:
    """Remove characters that a library may produce and no database stores: NUL and lone surrogates."""
    return _UNSTORABLE.sub("", text)
