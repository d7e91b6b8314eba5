"""The text of documents, in pages."""

import asyncio
from typing import NamedTuple

from backend.extraction.domain.chunking import readable_text
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.ports.knowledge import KnowledgeStore

MAX_BYTES_READ_HERE = 262_144
"""The text of a larger document is put together in a thread."""


class TextPage(NamedTuple):
    """A range of a document's text; offsets count characters."""

    document: Document
    text: str
    offset: int
    total_characters: int

    @property
    def next_offset(self) -> int | None:
        """Where the next page begins; None at the end."""
        end = self.offset + len(self.text)
        return end if end < self.total_characters else None


async def text_page(store: KnowledgeStore, document: Document, offset: int, limit: int) -> TextPage:
    """Return up to `limit` characters of a document's text from `offset`; the caller has checked who reads it.

    Raises:
        NotFound: the document was deleted meanwhile.
    """
    body, chunks = await store.document_body(document.id), await store.chunks(document.id)

    def page() -> TextPage:
        text = readable_text(document.media_type, body, chunks)
        return TextPage(document, text[offset : offset + limit], offset, len(text))

    return await asyncio.to_thread(page) if document.size_bytes > MAX_BYTES_READ_HERE else page()
