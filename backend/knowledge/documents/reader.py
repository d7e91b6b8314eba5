"""The `DocumentReader`: each format has a function; formats that need a heavy library are read by a child process."""

import asyncio
from collections.abc import Sequence

from backend.knowledge.documents.chosen import read_blocks
from backend.knowledge.documents.separate import SeparateReader
from backend.knowledge.domain.knowledge import Block
from backend.knowledge.domain.media_types import DOCX, HTML, MARKDOWN, PDF, TEXT
from shared.errors import InvalidRequest, PayloadTooLarge, UnsupportedValue

MAX_TEXT_CHARACTERS = 20_000_000
"""More than the longest books have; a document of this length is cut into some 12,000 chunks."""

_READ_HERE = (TEXT, MARKDOWN, HTML)
_READ_IN_CHILD = (PDF, DOCX)


class LibraryDocumentReader:
    """Reads text, Markdown and HTML in a thread, PDF and DOCX in a child process."""

    def __init__(self) -> None:
        self._separate = SeparateReader()

    async def read(self, body: bytes, media_type: str) -> tuple[Block, ...]:
        """Return the document's text in reading order.

        A call that is cancelled leaves its thread to finish; a child process is killed.
        """
        if media_type in _READ_IN_CHILD:
            return _checked(await self._separate.read(body, media_type))
        if media_type not in _READ_HERE:
            raise UnsupportedValue(f"Documents of type {media_type} are not read.", param="Content-Type")
        return _checked(await asyncio.to_thread(read_blocks, body, media_type))


def _checked(read: Sequence[Block]) -> tuple[Block, ...]:
    blocks = tuple(block for block in read if block.text.strip())
    if not blocks:
        raise InvalidRequest("The document has no text in it.", param="body")
    if sum(len(block.text) for block in blocks) > MAX_TEXT_CHARACTERS:
        raise PayloadTooLarge(f"The document has more than {MAX_TEXT_CHARACTERS} characters of text.", param="body")
    return blocks
