"""The child processes in which files are cut, as seen from the backend."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from backend.extraction.domain.media_types import FORMATS
from backend.extraction.domain.pictures import PictureAnswer
from backend.extraction.formats.cutting import ContentLimits, SizedPiece
from backend.extraction.formats.frames import (
    ANSWER,
    HEAD,
    Answer,
    Batch,
    Ended,
    Job,
    PictureSent,
    PieceCount,
    Refused,
    as_frame,
)
from backend.extraction.ports import ReadableFile
from backend.extraction.services.document_pictures import DocumentPictures
from backend.foundation.services.supervision import beside
from shared.errors import InvalidRequest, PayloadTooLarge

CHILD_MODULE = "backend.extraction.formats.child"
_PIECE_BYTES = 256 * 1024
_READ_BUFFER_BYTES = 256 * 1024
_DAMAGED = "The document cannot be read; it may be damaged."


class ChildLimits(NamedTuple):
    """What reading one file may take."""

    memory_bytes: int = 384 * 1024**2
    cpu_seconds: int = 20
    heavy_cpu_seconds: int = 60
    drawing_seconds: int = 60
    wall_seconds: float = 120.0
    frame_bytes: int = 8 * 1024**2
    content: ContentLimits = ContentLimits()

    def job(self, file: ReadableFile, *, draws: bool) -> Job:
        """Describe a file to the child; heavy formats get more time, and so does drawing pictures."""
        return Job(
            media_type=file.media_type,
            size_bytes=len(file.body),
            cpu_seconds=self.heavy_cpu_seconds if FORMATS[file.media_type].is_heavy else self.cpu_seconds,
            charset=file.charset,
            drawing_seconds=self.drawing_seconds if draws else 0,
            **self.content._asdict(),
        )


class Child:
    """One child process; it cuts one file after another until it is stopped."""

    def __init__(self, running: asyncio.subprocess.Process, limits: ChildLimits) -> None:
        self._running = running
        self._limits = limits
        self._is_idle = True
        self._has_read_heavy = False

    @classmethod
    async def start(cls, limits: ChildLimits) -> "Child":
        """Start a process."""
        running = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", CHILD_MODULE, str(limits.memory_bytes)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_READ_BUFFER_BYTES,
            # Without the secrets of the service; and without threads, each of which takes address space.
            env={"PYTHONPATH": import_path(), "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
        )
        return cls(running, limits)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._running.pid

    @property
    def is_usable(self) -> bool:
        """Say whether it may cut another file: it is alive and idle, and has read nothing of a heavy format."""
        return not self.has_ended and self._is_idle and not self._has_read_heavy

    @property
    def has_ended(self) -> bool:
        """Say whether the process is no more."""
        return self._running.returncode is not None

    def kill(self) -> None:
        """Kill the process; the loop notes its end."""
        with suppress(ProcessLookupError):
            self._running.kill()

    async def stop(self) -> None:
        """Kill the process and wait for its end."""
        self.kill()
        await self._running.wait()

    async def cut(
        self, file: ReadableFile, pictures: DocumentPictures | None = None
    ) -> AsyncGenerator[PieceCount | Sequence[SizedPiece]]:
        """Yield the number of the pieces with the notes, then the pieces; have pictures read where that is wanted.

        Raises:
            InvalidRequest: the file is malformed, or reading it takes too much time or ends the child.
            PayloadTooLarge: it holds too much, or takes too much memory.
        """
        self._is_idle = False
        self._has_read_heavy |= FORMATS[file.media_type].is_heavy
        left = self._limits.wall_seconds + (self._limits.drawing_seconds if pictures is not None else 0)
        loop = asyncio.get_running_loop()
        async with beside(self._send(file, draws=pictures is not None)) as sending:
            while True:
                began = loop.time()
                answer = await self._receive(left)
                left -= loop.time() - began
                match answer:
                    case PieceCount():
                        yield answer
                    case Batch(pieces=pieces):
                        yield pieces
                    case PictureSent(size_bytes=size_bytes) if pictures is not None:
                        await self._tell(await pictures.read(await self._receive_bytes(size_bytes, left)))
                    case Ended():
                        self._is_idle = True
                        return
                    case Refused(outcome=outcome, message=message):
                        self._is_idle = sending.done()
                        raise (PayloadTooLarge if outcome == "too_large" else InvalidRequest)(message, param="body")
                    case PictureSent():
                        raise InvalidRequest(_DAMAGED, param="body")

    async def _send(self, file: ReadableFile, *, draws: bool) -> None:
        """Write in small pieces, so that the transport copies no more than one of them."""
        target = self._pipes[0]
        with suppress(ConnectionError):
            target.write(as_frame(self._limits.job(file, draws=draws)))
            with memoryview(file.body) as view:
                for start in range(0, len(file.body), _PIECE_BYTES):
                    target.write(bytes(view[start : start + _PIECE_BYTES]))
                    await target.drain()

    async def _tell(self, answer: PictureAnswer) -> None:
        target = self._pipes[0]
        with suppress(ConnectionError):
            target.write(as_frame(answer))
            await target.drain()

    async def _receive(self, seconds: float) -> Answer:
        (said,) = HEAD.unpack(await self._receive_bytes(HEAD.size, seconds))
        try:
            return ANSWER.validate_json(await self._receive_bytes(said, seconds))
        except (ValidationError, ValueError):
            raise InvalidRequest(_DAMAGED, param="body") from None

    async def _receive_bytes(self, count: int, seconds: float) -> bytes:
        if count > self._limits.frame_bytes:
            raise PayloadTooLarge("A part of the document is too large to be read.", param="body")
        try:
            async with asyncio.timeout(max(seconds, 0)):
                return await self._pipes[1].readexactly(count)
        except TimeoutError:
            complaint = f"Reading the document takes more than {self._limits.wall_seconds:g} seconds."
            raise InvalidRequest(complaint, param="body") from None
        except asyncio.IncompleteReadError:
            raise await self._what_ended_it() from None

    @property
    def _pipes(self) -> tuple[asyncio.StreamWriter, asyncio.StreamReader]:
        target, source = self._running.stdin, self._running.stdout
        if target is None or source is None:
            raise RuntimeError("a child was started without pipes")
        return target, source

    async def _what_ended_it(self) -> InvalidRequest:
        ended_by = -await self._running.wait()
        if ended_by == signal.SIGXCPU:
            return InvalidRequest("Reading the document takes too much computing time.", param="body")
        megabytes = self._limits.memory_bytes // 1024**2
        return InvalidRequest(
            f"The document cannot be read: it is damaged, or takes more than {megabytes} MB of memory.", param="body"
        )


def import_path() -> str:
    """Return where this process finds its modules, so that the child finds the same ones."""
    return os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
