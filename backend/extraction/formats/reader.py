"""The `DocumentReader`: files are cut in child processes, except texts so small that nothing in them takes long."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

from backend.extraction.domain.media_types import FORMATS, READABLE_NAMES
from backend.extraction.formats.children import Child, ChildLimits
from backend.extraction.formats.cutting import SizedPiece, cut_file
from backend.extraction.formats.fair_semaphore import Claimant, FairSemaphore
from backend.extraction.ports import CutFile, ReadableFile
from backend.search.domain.chunks import Chunk
from shared.errors import InvalidRequest, UnsupportedValue
from shared.ids import IdPrefix, new_id

MAX_CHILDREN = 3
QUEUE_LENGTH, WHOLE_QUEUE_LENGTH = 16, 64
"""How many files of one tenant, and of all, wait for a child."""

IDLE_SECONDS = 10.0
"""How long a child waits for another file."""


class LibraryDocumentReader:
    """Starts child processes when they are needed, and stops them when they are idle."""

    def __init__(self, limits: ChildLimits | None = None, *, children: int = MAX_CHILDREN) -> None:
        self._limits = limits or ChildLimits()
        self._places = FairSemaphore(children, QUEUE_LENGTH, WHOLE_QUEUE_LENGTH)
        self._idle: list[tuple[Child, asyncio.TimerHandle]] = []
        self._killed: list[Child] = []

    @asynccontextmanager
    async def read(self, file: ReadableFile) -> AsyncGenerator[CutFile]:
        """Yield the pieces of a file; a caller that leaves early ends the work of the child."""
        if file.media_type not in FORMATS:
            raise UnsupportedValue(
                f"Documents of type {file.media_type} are not read; use {READABLE_NAMES}.",
                param="Content-Type",
            )
        if len(file.body) <= FORMATS[file.media_type].bytes_read_here:
            batches = _cut_here(file, self._limits)
            async with aclosing(batches):
                yield await _open(file, batches)
            return
        claimant = Claimant(file.tenant, file.user_id)
        async with (
            self._places.place(claimant),
            self._child() as child,
            aclosing(child.cut(file.body, file.media_type)) as batches,
        ):
            yield await _open(file, batches)

    async def close(self) -> None:
        """Stop all children that are idle; those that read are stopped by their callers."""
        for _, timer in self._idle:
            timer.cancel()
        for child in (*(child for child, _ in self._idle), *self._killed):
            await child.stop()
        self._idle.clear()
        self._killed.clear()

    @asynccontextmanager
    async def _child(self) -> AsyncGenerator[Child]:
        child = await self._take()
        try:
            yield child
        finally:
            if child.is_usable:
                timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._expire, child)
                self._idle.append((child, timer))
            else:
                await child.stop()

    async def _take(self) -> Child:
        while self._idle:
            child, timer = self._idle.pop()
            timer.cancel()
            if child.is_usable:
                return child
            await child.stop()
        return await Child.start(self._limits)

    def _expire(self, child: Child) -> None:
        self._idle = [one for one in self._idle if one[0] is not child]
        child.kill()
        self._killed = [one for one in (*self._killed, child) if not one.has_ended]


async def _cut_here(file: ReadableFile, limits: ChildLimits) -> AsyncGenerator[int | Sequence[SizedPiece]]:
    count, batches = await asyncio.to_thread(cut_file, bytes(file.body), file.media_type, limits.content)
    yield count
    for pieces in batches:
        yield pieces


async def _open(file: ReadableFile, batches: AsyncGenerator[int | Sequence[SizedPiece]]) -> CutFile:
    count = await anext(batches)
    if not isinstance(count, int):
        raise InvalidRequest("The document cannot be read; it must not be damaged.", param="body")
    return CutFile(count, _chunks(file.document_id, batches, count))


async def _chunks(
    document_id: str, batches: AsyncGenerator[int | Sequence[SizedPiece]], count: int
) -> AsyncIterator[Sequence[Chunk]]:
    ordinal = 0
    async for pieces in batches:
        if isinstance(pieces, int) or ordinal + len(pieces) > count:
            raise InvalidRequest("The document cannot be read; it must not be damaged.", param="body")
        chunks = [
            Chunk(
                id=new_id(IdPrefix.CHUNK),
                document_id=document_id,
                ordinal=place,
                heading_path=tuple(path),
                text=text,
                tokens=tokens,
            )
            for place, (path, text, tokens) in enumerate(pieces, ordinal)
        ]
        ordinal += len(chunks)
        yield chunks
