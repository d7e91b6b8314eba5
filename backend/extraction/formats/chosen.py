"""What reads files; the library of a format is loaded with the first document of the format."""

from collections.abc import Iterable
from pkgutil import resolve_name

from backend.extraction.domain.blocks import Block
from backend.extraction.domain.media_types import FORMATS, TEXT


def read_blocks(body: bytes, media_type: str) -> Iterable[Block]:
    """Read a document, as plain text where its type is no other; some formats are read as the blocks are asked for.

    Raises:
        InvalidRequest: the document is malformed. It may be raised while blocks are asked for.
        PayloadTooLarge: it has too many pages or cells, or is too large unpacked; likewise.
    """
    return resolve_name(f"{__package__}.{FORMATS.get(media_type, FORMATS[TEXT]).reader}")(body)


def read_email(body: bytes) -> Iterable[Block]:
    """Read an e-mail, and what is attached to it."""
    from backend.extraction.formats.email import read_message

    return read_message(body, read_blocks)
