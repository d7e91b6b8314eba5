"""The choice of the reader by media type; its library is loaded with the first document of the format."""

from collections.abc import Sequence

from backend.knowledge.domain.knowledge import Block
from backend.knowledge.domain.media_types import HTML, MARKDOWN


def read_blocks(body: bytes, media_type: str) -> Sequence[Block]:
    """Read a document as Markdown or HTML, and as plain text otherwise; it takes long, so call it in a thread.

    Raises:
        InvalidRequest: the document is malformed.
    """
    if media_type == MARKDOWN:
        from backend.knowledge.documents.markdown import read_markdown

        return read_markdown(body)
    if media_type == HTML:
        from backend.knowledge.documents.html import read_html

        return read_html(body)
    from backend.knowledge.documents.text import read_plain_text

    return read_plain_text(body)
