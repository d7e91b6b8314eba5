"""The `DocumentReader`: one function a format, run in a thread, because the libraries block."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from backend.adapters.documents.docx import read_docx
from backend.adapters.documents.html import read_html
from backend.adapters.documents.markdown import read_markdown
from backend.adapters.documents.pdf import read_pdf
from backend.adapters.documents.text import read_text
from backend.domain.blocks import Block
from backend.domain.media_types import DOCX, HTML, MARKDOWN, PDF, TEXT
from shared.errors import InvalidRequest, PayloadTooLarge, UnsupportedValue

MAX_TEXT_CHARACTERS = 20_000_000
"""More than the longest books; it would be cut into some 12,000 chunks."""

_READERS: Mapping[str, Callable[[bytes], Sequence[Block]]] = {
    TEXT: read_text,
    MARKDOWN: read_markdown,
    HTML: read_html,
    PDF: read_pdf,
    DOCX: read_docx,
}


class LibraryDocumentReader:
    """Reads text, Markdown, HTML, PDF and DOCX."""

    async def read(self, body: bytes, media_type: str) -> tuple[Block, ...]:
        """Return the document's text in reading order.

        A call that is cancelled leaves its thread to finish.
        """
        read = _READERS.get(media_type)
        if read is None:
            raise UnsupportedValue(f"Documents of type {media_type} are not read.", param="Content-Type")
        return await asyncio.to_thread(_checked, read, body)


def _checked(read: Callable[[bytes], Sequence[Block]], body: bytes) -> tuple[Block, ...]:
    blocks = tuple(block for block in read(body) if block.text.strip())
    if not blocks:
        raise InvalidRequest("The document has no text in it.", param="body")
    if sum(len(block.text) for block in blocks) > MAX_TEXT_CHARACTERS:
        raise PayloadTooLarge(f"The document has more than {MAX_TEXT_CHARACTERS} characters of text.", param="body")
    return blocks
