"""Reading PDF and DOCX in a child process.

Their libraries need more memory than all other reading, and a hostile file can make them use time or memory without
end. The child loads them only while it reads, under limits of its own; if it dies, only this file is refused.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from backend.knowledge.domain.knowledge import Block
from shared.errors import InvalidRequest, PayloadTooLarge
from shared.models.values import Value

READ_TIMEOUT_SECONDS = 60.0
MAX_CHILDREN = 2
CHILD_MODULE = "backend.knowledge.documents.child"


class ReadBlocks(Value):
    """What the child answers for a file that it could read."""

    outcome: Literal["read"] = "read"
    blocks: tuple[Block, ...]


class RefusedFile(Value):
    """What the child answers for a file that is refused."""

    outcome: Literal["invalid", "too_large"]
    message: str


ANSWER: TypeAdapter[ReadBlocks | RefusedFile] = TypeAdapter(ReadBlocks | RefusedFile)


class SeparateReader:
    """Starts a child process for each file, at most `MAX_CHILDREN` at a time."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(MAX_CHILDREN)

    async def read(self, body: bytes, media_type: str) -> tuple[Block, ...]:
        """Return the file's blocks.

        Raises:
            InvalidRequest: the file is malformed or encrypted, or reading it takes more time or memory than allowed.
            PayloadTooLarge: the file has too many pages, or is too large unpacked.
        """
        async with self._places:
            printed = await _run_child(body, media_type)
        try:
            answer = ANSWER.validate_json(printed)
        except ValidationError:
            raise InvalidRequest("The document cannot be read; it may be damaged.", param="body") from None
        if isinstance(answer, ReadBlocks):
            return answer.blocks
        refusal = PayloadTooLarge if answer.outcome == "too_large" else InvalidRequest
        raise refusal(answer.message, param="body")


async def _run_child(body: bytes, media_type: str) -> bytes:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", CHILD_MODULE, media_type),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PYTHONPATH": _import_path()},  # without the secrets of the service
    )
    try:
        async with asyncio.timeout(READ_TIMEOUT_SECONDS):
            printed, _ = await child.communicate(body)
    except TimeoutError:
        raise InvalidRequest("Reading the document takes too long.", param="body") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    return printed


def _import_path() -> str:
    """Return where this process finds its modules, so that the child finds the same ones."""
    return os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
