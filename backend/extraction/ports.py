"""The ports to what reads files and cuts them into chunks, and to what reads pictures."""

from collections.abc import AsyncIterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from backend.search.domain.chunks import Chunk


class ReadableFile(NamedTuple):
    """A file to be cut into the chunks of a document, and who sent it; a text with its encoding, where it is told.

    With `reads_pictures` its pictures are read as well, where an engine is set up: that may take minutes.
    """

    tenant: str
    user_id: str
    document_id: str
    media_type: str
    body: bytes | bytearray
    charset: str | None = None
    reads_pictures: bool = False


class CutFile(NamedTuple):
    """How many chunks a file has, and the chunks, at most `CHUNKS_AT_ONCE` at a time, as they are made.

    The notes say what of the file the chunks do not hold; `unread_pictures` counts what an engine for pictures could
    still read of it. Iterating raises what `DocumentReader.read` raises.
    """

    chunk_count: int
    batches: AsyncIterable[Sequence[Chunk]]
    notes: tuple[str, ...] = ()
    unread_pictures: int = 0


class PictureReader(Protocol):
    """An engine that finds the text in a picture (OCR)."""

    async def read_picture(self, picture: bytes) -> str:
        """Return the text of a JPEG in reading order, line by line; an empty one where there is none.

        Raises:
            Unavailable: the engine is away, overloaded or slow. Retryable.
            ModelRequestRejected: it refuses this picture, and will refuse it again.
        """
        ...


class DocumentReader(Protocol):
    """Cuts files into chunks, within limits of memory, time and size."""

    def read(self, file: ReadableFile) -> AbstractAsyncContextManager[CutFile]:
        """Begin to read a file; leaving the context ends the work on it.

        Raises:
            UnsupportedValue: the media type is not read; `param` is `Content-Type`.
            PayloadTooLarge: the text in it, its archive unpacked, or the memory to read it, is over the limit.
            InvalidRequest: the file is malformed, encrypted, of an uncertain encoding, without any text, or takes too
                long to read; `param` is `body`.
            Unavailable: too many files are waiting. Retryable.
        """
        ...
