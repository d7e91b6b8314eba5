"""The caller of a stream of `Connect`, without gRPC: what it says, and what it is sent."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

from grpc.aio import EOF, BaseError

from chat_shell.servers.grpc.caller_link import ROUND_SECONDS, CallerLink
from protos.execution.v1 import chat_shell_pb2, events_pb2
from shared.models.execution import ExecutionRequest
from shared.wire import request_to_proto
from tests.fakes.chat_shell_requests import full_request
from tests.fakes.chat_shell_servers import Shell
from tests.patience import PATIENCE_SECONDS


def start_of(turn: int, request: ExecutionRequest | None = None, **limits: Any) -> chat_shell_pb2.TurnCommand:
    """Return the command that begins a turn."""
    body = request_to_proto(request or full_request()).SerializeToString()
    return chat_shell_pb2.TurnCommand(turn=turn, start=chat_shell_pb2.StartTurn(request=body, **limits))


class Caller:
    """Implements the part of gRPC's context that a link needs; a write ends when `gate` is set, or fails."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.got: list[chat_shell_pb2.FromShell] = []
        self.has_gone = False
        self._said: asyncio.Queue[Any] = asyncio.Queue()
        self._come = asyncio.Event()

    def say(self, *commands: chat_shell_pb2.TurnCommand) -> None:
        """Send a message."""
        self.say_bytes(chat_shell_pb2.ToShell(commands=commands).SerializeToString())

    def say_bytes(self, body: bytes) -> None:
        """Send what need be no message."""
        self._said.put_nowait(body)

    def hang_up(self) -> None:
        """End this side of the stream."""
        self._said.put_nowait(EOF)

    def stop_server(self) -> None:
        """Have the server stop, after which nothing can be read."""
        self._said.put_nowait(None)

    async def read(self) -> Any:
        """Hear the next message, never at once."""
        await asyncio.sleep(0)
        said = await self._said.get()
        if said is None:
            raise BaseError
        return said

    async def write(self, body: bytes) -> None:
        """Get a message, unless the caller has gone."""
        if self.has_gone:
            raise BaseError
        self.got.append(chat_shell_pb2.FromShell.FromString(body))
        self._come.set()
        await self.gate.wait()

    async def message(self, place: int) -> chat_shell_pb2.FromShell:
        """Wait for the message at a place."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.got) <= place:
                self._come.clear()
                await self._come.wait()
        return self.got[place]

    async def frames_of(self, turn: int, *, after: int = 0) -> list[chat_shell_pb2.TurnFrame]:
        """Wait for the last frame of a turn; return all of it."""
        place = after
        while True:
            await self.message(place)
            frames = [frame for message in self.got for frame in message.frames if frame.turn == turn]
            if frames and frames[-1].is_last:
                return frames
            place += 1


def events_in(frames: list[chat_shell_pb2.TurnFrame]) -> list[events_pb2.ExecutionEvent]:
    """Put the events of a turn together, of which long ones come in pieces."""
    events: list[events_pb2.ExecutionEvent] = []
    pieces = b""
    for frame in frames:
        for encoded in frame.events:
            events.append(events_pb2.ExecutionEvent.FromString(pieces + encoded))
            pieces = b""
        pieces += frame.piece
    assert not pieces
    return events


@asynccontextmanager
async def linked(shell: Shell, round_seconds: float = ROUND_SECONDS) -> AsyncGenerator[tuple[CallerLink, Caller]]:
    """Serve a caller, who hangs up in the end."""
    link, caller = CallerLink(shell.turns, shell.bounds, "Execute", knows_newer=True), Caller()
    link.round_seconds = round_seconds
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        group.create_task(link.serve(cast(Any, caller), "a replica"))
        assert (await caller.message(0)).hello.replica == "a replica"
        yield link, caller
        caller.gate.set()
        caller.hang_up()
