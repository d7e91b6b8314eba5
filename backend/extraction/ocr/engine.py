"""An engine for pictures on this machine: RapidOCR in a child process, which is started when a picture comes."""

import asyncio
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import NamedTuple

from backend.extraction.domain.pictures import PictureAnswer
from backend.extraction.formats.children import import_path
from backend.extraction.formats.frames import HEAD
from shared.errors import ModelRequestRejected, Unavailable

OCR_CHILD = "backend.extraction.ocr.child"
MAX_ANSWER_BYTES = 4 * 1024**2


class EngineLimits(NamedTuple):
    """What the process may take, and how long it waits for another picture.

    It reserves 1.3 GB and uses 0.5 GB for a page of 300 dots an inch.
    """

    memory_bytes: int = 3 * 1024**3
    start_seconds: float = 60.0
    idle_seconds: float = 60.0


def is_installed() -> bool:
    """Say whether the engine is there: few machines want it, and it takes 300 MB."""
    return all(find_spec(name) is not None for name in ("rapidocr", "onnxruntime"))


class LocalPictureReader:
    """Implements `backend.extraction.ports.PictureReader`; it reads one picture at a time.

    A process that ends, or that somebody no longer waits for, is replaced when the next picture comes.
    """

    def __init__(self, limits: EngineLimits | None = None, module: str = OCR_CHILD) -> None:
        self._limits = limits or EngineLimits()
        self._module = module
        self._turn = asyncio.Lock()
        self._running: asyncio.subprocess.Process | None = None
        self._expired: asyncio.subprocess.Process | None = None
        self._idle_timer: asyncio.TimerHandle | None = None

    async def read_picture(self, picture: bytes) -> str:
        """Return the text of a JPEG."""
        async with self._turn:
            running = await self._usable()
            is_whole = False
            try:
                answer = await _exchange(running, picture)
                is_whole = True
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                raise ModelRequestRejected("the engine for pictures ended over it") from error
            finally:
                if not is_whole:
                    await self.close()
            loop = asyncio.get_running_loop()
            self._idle_timer = loop.call_later(self._limits.idle_seconds, self._expire)
        if answer.failure:
            raise ModelRequestRejected(answer.failure)
        return answer.text

    async def close(self) -> None:
        """End the process."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._expire()
        if self._expired is not None:
            await self._expired.wait()

    def _expire(self) -> None:
        """Kill the process, which is waited for when another one is wanted."""
        if self._running is not None:
            with suppress(ProcessLookupError):
                self._running.kill()
            self._running, self._expired = None, self._running

    async def _usable(self) -> asyncio.subprocess.Process:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._running is None or self._running.returncode is not None:
            await self.close()
            self._running = await self._start()
        return self._running

    async def _start(self) -> asyncio.subprocess.Process:
        """Start the process and wait until its models are loaded.

        Raises:
            Unavailable: it ends before, or takes too long.
        """
        running = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", self._module, str(self._limits.memory_bytes)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={"PYTHONPATH": import_path(), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        is_ready = False
        try:
            async with asyncio.timeout(self._limits.start_seconds):
                await _receive(running)
            is_ready = True
        except (TimeoutError, asyncio.IncompleteReadError) as error:
            raise Unavailable("the engine for pictures on this machine does not start") from error
        finally:
            if not is_ready:
                self._running = running
                await self.close()
        return running


async def _exchange(running: asyncio.subprocess.Process, picture: bytes) -> PictureAnswer:
    if running.stdin is None:
        raise RuntimeError("an engine was started without pipes")
    running.stdin.write(HEAD.pack(len(picture)) + picture)
    await running.stdin.drain()
    return await _receive(running)


async def _receive(running: asyncio.subprocess.Process) -> PictureAnswer:
    if running.stdout is None:
        raise RuntimeError("an engine was started without pipes")
    (said,) = HEAD.unpack(await running.stdout.readexactly(HEAD.size))
    if said > MAX_ANSWER_BYTES:
        raise ConnectionError("an answer that is none")
    return PictureAnswer.model_validate_json(await running.stdout.readexactly(said))
