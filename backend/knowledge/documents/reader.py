"""The `DocumentReader`: one function a format; formats that take a heavy library are read by a child process."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from backend.knowledge.documents.separate import SeparateReader
from backend.knowledge.domain.blocks import Block
from backend.knowledge.domain.media_types import DOCX, HTML, MARKDOWN, PDF, TEXT
from shared.errors import InvalidRequest, PayloadTooLarge, UnsupportedValue
from shared.loading import load

MAX_TEXT_CHARACTERS = 20_000_000
"""More than the longest books; it would be cut into some 12,000 chunks."""

_READERS: Mapping[str, str] = {
    TEXT: "backend.knowledge.documents.text:read_text",
    MARKDOWN: "backend.knowledge.documents.markdown:read_markdown",
    HTML: "backend.knowledge.documents.html:read_html",
}
"""Loaded when the first document of their format comes."""
_READ_APART = (PDF, DOCX)


class LibraryDocumentReader:
    """Reads text, Markdown and HTML in a thread, PDF and DOCX in a child process."""

    def __init__(self) -> None:
        self._separate = SeparateReader()

    async def read(self, body: bytes, media_type: str) -> tuple[Block, ...]:
        """Return the document's text in reading order.

        A call that is cancelled leaves its thread to finish; a child process is killed.
        """
        if media_type in _READ_APART:
            return _checked(await self._separate.read(body, media_type))
        if media_type not in _READERS:
            raise UnsupportedValue(f"Documents of type {media_type} are not read.", param="Content-Type")
        return _checked(await asyncio.to_thread(_read, body, media_type))


def _read(body: bytes, media_type: str) -> Sequence[Block]:
    read: Callable[[bytes], Sequence[Block]] = load(_READERS[media_type])
    return read(body)


def _checked(read: Sequence[Block]) -> tuple[Block, ...]:
    blocks = tuple(block for block in read if block.text.strip())
    if not blocks:
        raise InvalidRequest("The document has no text in it.", param="body")
    if sum(len(block.text) for block in blocks) > MAX_TEXT_CHARACTERS:
        raise PayloadTooLarge(f"The document has more than {MAX_TEXT_CHARACTERS} characters of text.", param="body")
    return blocks
