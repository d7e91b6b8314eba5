"""Reading documents of many formats."""

from typing import Protocol

from backend.knowledge.domain.knowledge import Block


class DocumentReader(Protocol):
    """Takes headings and paragraphs out of a file."""

    async def read(self, body: bytes, media_type: str) -> tuple[Block, ...]:
        """Return the document's text in reading order, at least one block of it.

        Raises:
            UnsupportedValue: a media type that is not read; `param` is `Content-Type`.
            PayloadTooLarge: the text in it, or its archive unpacked, is over the limit.
            InvalidRequest: malformed, encrypted, not UTF-8, or without any text; `param` is `body`.
        """
        ...
