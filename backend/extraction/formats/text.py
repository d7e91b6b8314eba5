"""Plain text, and functions that the text formats share."""

import re

from backend.extraction.domain.blocks import Block, Note, Paragraph
from backend.extraction.formats.encodings import find_encoding
from shared.errors import InvalidRequest

_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
_CONTROLS = re.compile("[\x01-\x08\x0e-\x1a\x1c-\x1f]")
_MAX_CONTROL_SHARE = 0.001
BYTE_ORDER_MARK = "\ufeff"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

MALFORMED = (AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What libraries raise for malformed files; none means a defect of this code. Each format adds those of its library."""


def read_plain_text(body: bytes) -> list[Block]:
    """Return the paragraphs between blank lines."""
    text, notes = decode(body)
    return [*paragraphs_of(text), *notes]


def decode(body: bytes, declared: str | None = None) -> tuple[str, list[Note]]:
    """Decode a text, and say where its encoding was guessed; line ends become line feeds.

    Raises:
        InvalidRequest: the encoding is uncertain, or the text holds a NUL.
    """
    encoding = find_encoding(body, declared)
    text = decode_as(body, encoding.name)
    return text.replace("\r\n", "\n").replace("\r", "\n"), list(encoding.notes())


def decode_as(body: bytes, encoding: str) -> str:
    """Decode a text of a known encoding.

    Raises:
        InvalidRequest: the bytes are not of this encoding, or hold a NUL.
    """
    try:
        text = body.decode(encoding).removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        said = f"The text is not valid {encoding.upper()} at byte {error.start}."
        raise InvalidRequest(said, param="body") from None
    check_is_text(text, "text")
    return text


def check_is_text(text: str, name: str) -> None:
    """Refuse what holds NULs or other control characters, as binary files do.

    Raises:
        InvalidRequest: it does.
    """
    if "\x00" in text:
        at = text.index("\x00")
        raise InvalidRequest(f"The {name} must not hold the character U+0000; it does at {at}.", param="body")
    if len(_CONTROLS.findall(text)) > _MAX_CONTROL_SHARE * len(text):
        raise InvalidRequest(f"The {name} is no text: it holds control characters.", param="body")


def paragraphs_of(text: str) -> list[Paragraph]:
    """Split at blank lines."""
    return [Paragraph(text=part) for part in _BLANK_LINES.split(text) if part.strip()]


def storable(text: str) -> str:
    """Remove characters that a library may produce and no database stores: NUL and lone surrogates."""
    return _UNSTORABLE.sub("", text)
