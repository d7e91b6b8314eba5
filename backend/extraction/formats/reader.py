"""The `DocumentReader`: files are cut in child processes, except texts so small that nothing in them takes long."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import NamedTuple

from backend.extraction.domain.media_types import FORMATS, READABLE_NAMES
from backend.extraction.domain.pictures import PictureTime
from backend.extraction.formats.children import Child, ChildLimits
from backend.extraction.formats.cutting import SizedPiece, cut_file
from backend.extraction.formats.encodings import is_encoded_as
from backend.extraction.formats.frames import PieceCount
from backend.extraction.ports import CutFile, PictureReader, ReadableFile
from backend.extraction.services.document_pictures import DocumentPictures
from backend.search.domain.chunks import Chunk
from shared.errors import InvalidRequest, Unavailable, UnsupportedValue
from shared.ids import IdPrefix, new_id

MAX_CHILDREN = 3
QUEUE_LENGTH, WHOLE_QUEUE_LENGTH = 16, 64
"""How many files of one tenant, and of all, wait for a child."""

IDLE_SECONDS = 10.0
"""How long a child waits for another file."""

_PICTURE_TIME = PictureTime()
_NOT_DRAWN = "Pictures were not read: to draw them takes too much memory or computing time."


class LibraryDocumentReader:
    """Starts child processes when they are needed, and stops them when they are idle.

    With an engine for pictures they send it those of a file whose pictures are to be read.
    """

    def __init__(
        self,
        limits: ChildLimits | None = None,
        *,
        children: int = MAX_CHILDREN,
        engine: PictureReader | None = None,
        picture_time: PictureTime = _PICTURE_TIME,
    ) -> None:
        self._limits = limits or ChildLimits()
        self._engine = engine
        self._picture_time = picture_time
        self._places = FairSemaphore(children, QUEUE_LENGTH, WHOLE_QUEUE_LENGTH)
        self._idle: list[tuple[Child, asyncio.TimerHandle]] = []
        self._killed: list[Child] = []

    @asynccontextmanager
    async def read(self, file: ReadableFile) -> AsyncGenerator[CutFile]:
        """Yield the pieces of a file; a caller that leaves early ends the work of the child."""
        engine = self._engine if file.reads_pictures else None
        if file.media_type not in FORMATS or (engine is None and FORMATS[file.media_type].is_picture):
            raise UnsupportedValue(
                f"Documents of type {file.media_type} are not read; use {READABLE_NAMES}.",
                param="Content-Type",
            )
        if len(file.body) <= FORMATS[file.media_type].bytes_read_here and _is_utf8(file):
            batches = _cut_here(file, self._limits)
            async with aclosing(batches):
                yield await _open(file, batches)
            return
        pictures = DocumentPictures(engine, self._picture_time) if engine is not None else None
        async with self._places.place(Claimant(file.tenant, file.user_id)), AsyncExitStack() as stack:
            yield await self._open_in_child(file, pictures, stack)

    async def _open_in_child(
        self, file: ReadableFile, pictures: DocumentPictures | None, stack: AsyncExitStack
    ) -> CutFile:
        """Begin to read in a child, once more without pictures where drawing them has ended it."""
        child = await stack.enter_async_context(self._child())
        batches = await stack.enter_async_context(aclosing(child.cut(file, pictures)))
        try:
            return await _open(file, batches)
        except InvalidRequest:
            if pictures is None or not pictures.were_asked or not child.has_ended:
                raise
        await stack.aclose()
        cut = await self._open_in_child(file, None, stack)
        return cut._replace(notes=(*cut.notes, _NOT_DRAWN))

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


def _is_utf8(file: ReadableFile) -> bool:
    """Say whether a text is in UTF-8: what guesses other encodings is loaded by children alone."""
    return file.charset in (None, "utf-8") and is_encoded_as(bytes(file.body), "utf-8")


async def _cut_here(file: ReadableFile, limits: ChildLimits) -> AsyncGenerator[PieceCount | Sequence[SizedPiece]]:
    cut = await asyncio.to_thread(cut_file, bytes(file.body), file.media_type, limits.content)
    yield PieceCount(chunk_count=cut.chunk_count, notes=cut.notes)
    for pieces in cut.batches:
        yield pieces


async def _open(file: ReadableFile, batches: AsyncGenerator[PieceCount | Sequence[SizedPiece]]) -> CutFile:
    counted = await anext(batches)
    if not isinstance(counted, PieceCount):
        raise InvalidRequest("The document cannot be read; it must not be damaged.", param="body")
    chunks = _chunks(file.document_id, batches, counted.chunk_count)
    return CutFile(counted.chunk_count, chunks, counted.notes, counted.unread_pictures)


async def _chunks(
    document_id: str, batches: AsyncGenerator[PieceCount | Sequence[SizedPiece]], count: int
) -> AsyncIterator[Sequence[Chunk]]:
    ordinal = 0
    async for pieces in batches:
        if isinstance(pieces, PieceCount) or ordinal + len(pieces) > count:
            raise InvalidRequest("The document cannot be read; it must not be damaged.", param="body")
        chunks = [
            Chunk(
                id=new_id(IdPrefix.CHUNK),
                document_id=document_id,
                ordinal=number,
                heading_path=tuple(path),
                text=text,
                tokens=tokens,
                place=place,
            )
            for number, (path, text, tokens, place) in enumerate(pieces, ordinal)
        ]
        ordinal += len(chunks)
        yield chunks


RETRY_AFTER_SECONDS = 5.0


class Claimant(NamedTuple):
    """The user and tenant that ask for a place."""

    tenant: str
    user_id: str


class FairSemaphore:
    """`count` places. Users take turns, and none has more than all but one, so that nobody waits for one user alone.

    At most `queue_length` wait for each tenant, and `whole_queue_length` in all.
    """

    def __init__(self, count: int, queue_length: int, whole_queue_length: int) -> None:
        self._free = count
        self._most_of_one = max(1, count - 1)
        self._queue_length = queue_length
        self._whole_queue_length = whole_queue_length
        self._held = Counter[Claimant]()
        self._waiting: dict[Claimant, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def place(self, claimant: Claimant) -> AsyncGenerator[None]:
        """Wait for a place and hold it.

        Raises:
            Unavailable: too many wait already. Retryable.
        """
        self._check_queue(claimant)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(claimant, deque()).append(turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(claimant, turn)
            else:
                self._give_back(claimant)
            raise
        try:
            yield
        finally:
            self._give_back(claimant)

    def _check_queue(self, claimant: Claimant) -> None:
        lengths = {one: len(turns) for one, turns in self._waiting.items()}
        of_tenant = sum(length for one, length in lengths.items() if one.tenant == claimant.tenant)
        if of_tenant >= self._queue_length or sum(lengths.values()) >= self._whole_queue_length:
            raise Unavailable("Too many documents are waiting to be read.", retry_after_seconds=RETRY_AFTER_SECONDS)

    def _admit(self) -> None:
        """Give free places to those who wait; who got one goes behind the others."""
        for claimant in list(self._waiting):
            if self._free and self._held[claimant] < self._most_of_one:
                turns = deque(turn for turn in self._waiting.pop(claimant) if not turn.cancelled())
                if turns:
                    self._free -= 1
                    self._held[claimant] += 1
                    turns.popleft().set_result(None)
                if turns:
                    self._waiting[claimant] = turns

    def _give_back(self, claimant: Claimant) -> None:
        self._free += 1
        self._held[claimant] -= 1
        if not self._held[claimant]:
            del self._held[claimant]
        self._admit()

    def _forget(self, claimant: Claimant, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(claimant)
        if turns is not None and turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[claimant]
