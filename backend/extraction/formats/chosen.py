"""The readers of formats and the cutter of files, loaded at their first use.

The library of a format is loaded with the first document of the format, NumPy with the first one that is cut here.
"""

from collections.abc import Iterable, Sequence
from pkgutil import resolve_name

from backend.extraction.domain.blocks import Block
from backend.extraction.domain.media_types import FORMATS, TEXT
from backend.extraction.formats.pieces import ContentLimits, PieceBatch


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


def cut_here(body: bytes, media_type: str, limits: ContentLimits) -> tuple[int, Sequence[PieceBatch]]:
    """Cut a file in this process, in the thread of the caller; return how many pieces it has, and the pieces.

    Raises:
        PayloadTooLarge: it holds more than `limits` allow.
        InvalidRequest: it is malformed, not UTF-8, or without any text.
    """
    from backend.extraction.formats.cutting import cut_file

    count, batches = cut_file(body, media_type, limits)
    return count, tuple(batches)
