"""The streams to a child process that speaks the protocol over its standard input and output, a message a line."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from chat_shell.tools.domain.server_entry import LocalServer

END_SECONDS = 2.0
"""How long a child may take to end once its input is closed, and again after SIGTERM."""

LAST_WORDS_SECONDS = 1.0
"""How long the end of its standard error is waited for, which what it has started may hold open."""

MAX_ERROR_BYTES = 2_000
MAX_LINE_CHARACTERS = 300
"""How much of its standard error is kept, and how long a line of that is shown."""

Received = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Received], MemoryObjectSendStream[SessionMessage]]


class Child:
    """A child and why it must end: `is_too_large` once it has written a message that is longer than may be read."""

    def __init__(self, started: asyncio.subprocess.Process) -> None:
        self.started = started
        self.ended = asyncio.Event()
        self.is_too_large = False
        self.error_end = b""

    @property
    def last_line(self) -> str:
        """The last line of its standard error so far, within bounds and without control characters."""
        lines = self.error_end.decode(errors="replace").splitlines()
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return "".join(letter for letter in last if letter.isprintable())[:MAX_LINE_CHARACTERS]


@asynccontextmanager
async def start_child(link: LocalServer, max_bytes: int) -> AsyncGenerator[tuple[Child, Streams]]:
    """Start a child with the streams to it; it is ended with the block, and all that it has started.

    Of what it writes to its standard error the last is kept, and nothing of it is shown here: it may hold anything.

    Raises:
        OSError: it cannot be started.
    """
    given = {name: value.get_secret_value() for name, value in link.environment.items()}
    started = await asyncio.create_subprocess_exec(
        link.command,
        *link.arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**get_default_environment(), **given},
        limit=max_bytes,
        start_new_session=True,
    )
    child = Child(started)
    to_session, from_child = anyio.create_memory_object_stream[Received](0)
    to_child, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(_read(child, to_session))
            writing = group.create_task(_write(child, from_session))
            listening = group.create_task(_listen(child))
            try:
                yield child, (from_child, to_child)
            finally:
                reading.cancel()
                writing.cancel()
                try:
                    await _end(started)
                    await asyncio.wait({listening}, timeout=LAST_WORDS_SECONDS)
                finally:
                    listening.cancel()
    finally:
        for stream in (to_session, from_child, to_child, from_session):
            stream.close()


async def _read(child: Child, to_session: MemoryObjectSendStream[Received]) -> None:
    try:
        async with to_session:
            while child.started.stdout is not None and (line := await child.started.stdout.readline()):
                await to_session.send(_parse(line))
    except ValueError:  # what readline raises for a line beyond the limit
        child.is_too_large = True
    except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass
    finally:
        child.ended.set()


async def _listen(child: Child) -> None:
    """Take all that a child writes to its standard error, so that it never waits, and keep the end."""
    with suppress(OSError):
        while child.started.stderr is not None and (said := await child.started.stderr.read(MAX_ERROR_BYTES)):
            child.error_end = (child.error_end + said)[-MAX_ERROR_BYTES:]


async def _write(child: Child, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
    given = child.started.stdin
    try:
        async with from_session:
            async for message in from_session:
                if given is None:
                    break
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                given.write(text.encode() + b"\n")
                await given.drain()
    except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        child.ended.set()


def _parse(line: bytes) -> Received:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError as error:
        return error


async def _end(started: asyncio.subprocess.Process) -> None:
    """End a child: by the end of its input, then by signals to it and all that it has started.

    The last of these is sent also when the wait for its end is cancelled: a child that is deaf would live on.
    """
    try:
        if started.stdin is not None:
            started.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await started.wait()
                return
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await started.wait()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(started.pid, signal.SIGKILL)
        await started.wait()
