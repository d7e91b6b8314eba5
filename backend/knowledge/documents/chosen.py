"""The choice of the reader by media type; its library is loaded with the first document of the format."""

from collections.abc import Sequence

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
