"""What reads and cuts files, loaded at its first use.

The library of a format is loaded with the first document of the format, NumPy with the first one that is cut here.
"""

from collections.abc import Sequence

from backend.knowledge.documents.pieces import ContentLimits, PieceBatch
from backend.knowledge.domain.knowledge import Block
from backend.knowledge.domain.media_types import DOCX, HTML, MARKDOWN, PDF


def read_blocks(body: bytes, media_type: str) -> Sequence[Block]:
    """Read a document, as plain text where its type is no other.

    Raises:
        InvalidRequest: the document is malformed.
        PayloadTooLarge: it has too many pages, or is too large unpacked.
    """
    if media_type == PDF:
        from backend.knowledge.documents.pdf import read_pdf as read
    elif media_type == DOCX:
        from backend.knowledge.documents.docx import read_docx as read
    elif media_type == MARKDOWN:
        from backend.knowledge.documents.markdown import read_markdown as read
    elif media_type == HTML:
        from backend.knowledge.documents.html import read_html as read
    else:
        from backend.knowledge.documents.text import read_plain_text as read
    return read(body)


def cut_here(body: bytes, media_type: str, limits: ContentLimits) -> tuple[int, Sequence[PieceBatch]]:
    """Cut a file in this process, in the thread of the caller; return how many pieces it has, and the pieces.

    Raises:
        PayloadTooLarge: it holds more than `limits` allow.
        InvalidRequest: it is malformed, not UTF-8, or without any text.
    """
    from backend.knowledge.documents.cutting import cut_file

    count, batches = cut_file(body, media_type, limits)
    return count, tuple(batches)
