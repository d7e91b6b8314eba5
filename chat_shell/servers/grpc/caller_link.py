"""A stream of `Connect`: one task reads what a caller says about all its turns, one writes what they bring forth."""

import asyncio
from contextlib import suppress
from typing import Any, TypeAlias

import structlog
from google.protobuf.message import DecodeError
from grpc.aio import EOF, BaseError, ServicerContext

from chat_shell.foundation.services.message_bounds import MessageBounds
from chat_shell.servers.grpc.linked_turn import LinkedTurn
from chat_shell.servers.grpc.messages import decode_message
from chat_shell.turns.services.event_buffer import HEARTBEAT_SECONDS
from chat_shell.turns.services.turn_service import TurnService
from protos.execution.v1 import chat_shell_pb2, request_pb2
from shared.errors import BallastError, InternalError, InvalidRequest
from shared.message_size import STREAM_MESSAGE_BYTES
from shared.tracing import SpanKind, is_tracing, span_of
from shared.wire import request_from_proto

log = structlog.get_logger("chat_shell.grpc")

SHARE_BYTES, MESSAGE_BYTES = 32_768, 131_072
"""How much of one turn, and of all together, goes in one message: no turn waits long for what others have to say."""

ROUND_SECONDS = 0.015
"""The least time behind a message to one that holds nothing but more of what has begun: many turns share a wake-up."""

Context: TypeAlias = "ServicerContext[bytes, bytes]"


class CallerLink:
    """The turns of one caller. Frames of all turns that are ready in a tick of the loop go in one message.

    While a message is on its way, what comes is joined in the next one. Deltas behind others wait for one that is due:
    it takes `round_seconds` since the one before, or something else to be sent.
    """

    heartbeat_seconds, round_seconds = HEARTBEAT_SECONDS, ROUND_SECONDS

    def __init__(self, turns: TurnService, bounds: MessageBounds, span_name: str, *, knows_newer: bool) -> None:
        self._turn_service = turns
        self._bounds = bounds
        self._span_name = span_name
        self._knows_newer = knows_newer
        self._turns: dict[int, LinkedTurn] = {}
        self._ready: dict[int, LinkedTurn] = {}
        self._has_message = asyncio.Event()
        self._is_due = asyncio.Event()
        self._next = chat_shell_pb2.FromShell()
        self._has_written = False

    def send_away(self) -> None:
        """Tell the caller that no new turns are taken; it ends the stream when those that run have ended."""
        self._next.go_away.SetInParent()
        self._has_message.set()

    async def serve(self, context: Context, replica: str) -> None:
        """Serve the stream until the caller ends it, which cancels the turns that run.

        Raises:
            InvalidRequest: the caller has sent what is no message.
        """
        self._next.hello.replica = replica
        self._next.hello.heartbeat_milliseconds = int(1000 * self.heartbeat_seconds)
        self._has_message.set()
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(self._write(context)), group.create_task(self._beat())]
            refusal = await self._read(context, group)
            for task in beside:
                task.cancel()
            for turn in self._turns.values():
                if turn.task is not None:
                    turn.task.cancel()
        if refusal is not None:
            raise refusal

    async def _read(self, context: Context, group: asyncio.TaskGroup) -> InvalidRequest | None:
        while True:
            try:
                body: Any = await context.read()
                if body is EOF:
                    return None
                if len(body) > STREAM_MESSAGE_BYTES:
                    raise InvalidRequest(f"More than {STREAM_MESSAGE_BYTES} bytes were sent at a time.")
                for command in chat_shell_pb2.ToShell.FromString(body).commands:
                    self._obey(command, group)
            except DecodeError:
                return InvalidRequest("The message is no execution.v1.ToShell.")
            except InvalidRequest as refusal:
                return refusal
            except BaseError:
                return None  # the server has stopped while this task had yet to hear of its last message

    def _obey(self, command: chat_shell_pb2.TurnCommand, group: asyncio.TaskGroup) -> None:
        turn = self._turns.get(command.turn)
        match command.WhichOneof("command"):
            case "start" if turn is not None:
                raise InvalidRequest("The number of a turn was given to another one.")
            case "start":
                self._start(command, group)
            case "credit_bytes" if turn is not None:
                turn.credit(command.credit_bytes)
            case "cancel" if turn is not None and turn.task is not None:
                turn.task.cancel()
            case _:
                pass  # of a turn that has ended meanwhile

    def _start(self, command: chat_shell_pb2.TurnCommand, group: asyncio.TaskGroup) -> None:
        start, number = command.start, command.turn
        left_seconds = start.left_seconds if start.HasField("left_seconds") else None
        turn = LinkedTurn(number, self._add_ready, knows_newer=self._knows_newer)
        turn.task = task = group.create_task(self._run(turn, start.request, left_seconds, start.traceparent))
        self._turns[number] = turn
        timer = None
        if left_seconds is not None:
            timer = asyncio.get_running_loop().call_later(left_seconds, task.cancel)

        def forget(_task: asyncio.Task[None]) -> None:
            del self._turns[number]
            self._ready.pop(number, None)
            if timer is not None:
                timer.cancel()

        task.add_done_callback(forget)

    async def _run(self, turn: LinkedTurn, body: bytes, left_seconds: float | None, traceparent: str) -> None:
        """Run a turn to the last of its frames; cancelling this cancels the turn."""
        await asyncio.sleep(0)  # a caller who has gone is heard to have before a model is called
        try:
            parent = traceparent if is_tracing() else None
            attributes = {"rpc.system": "grpc", "rpc.method": self._span_name}
            with span_of(self._span_name, attributes, SpanKind.SERVER, parent), self._bounds.hold() as held:
                held.grow(len(body))
                decoded = await decode_message(request_pb2.ExecutionRequest, request_from_proto, body)
                request = self._turn_service.bring_forward(decoded, left_seconds)
                await self._turn_service.run(request, turn)
        except BallastError as error:
            turn.end(refusal=error)
        except Exception as error:
            log.exception("Call broke")
            turn.end(refusal=InternalError(f"An internal error ended the call ({type(error).__name__})."))
        await turn.all_taken()

    def _add_ready(self, turn: LinkedTurn) -> None:
        self._ready[turn.number] = turn
        self._has_message.set()
        if not turn.may_wait:
            self._is_due.set()

    async def _write(self, context: Context) -> None:
        loop = asyncio.get_running_loop()
        next_round = loop.call_soon(self._is_due.set)
        with suppress(BaseError):  # the caller has gone, as the end of the call tells
            while True:
                await self._has_message.wait()
                await self._is_due.wait()
                next_round.cancel()
                message = self._take_message()
                next_round = loop.call_later(self.round_seconds, self._is_due.set)
                await context.write(message.SerializeToString())

    async def _beat(self) -> None:
        """Say that this loop runs, whenever nothing else was said for a while."""
        while True:
            await asyncio.sleep(self.heartbeat_seconds)
            if not self._has_written:
                self._next.heartbeat.SetInParent()
                self._has_message.set()
            self._has_written = False

    def _take_message(self) -> chat_shell_pb2.FromShell:
        """Return the next message: a part of each turn that is ready, those first that have waited longest."""
        message, self._next = self._next, chat_shell_pb2.FromShell()
        self._has_written = True
        self._is_due.clear()
        room, unfinished = MESSAGE_BYTES, list[LinkedTurn]()
        while self._ready and room > 0:
            turn = self._ready.pop(next(iter(self._ready)))
            room -= turn.write_frame(message.frames.add(), SHARE_BYTES)
            if turn.has_frame:
                unfinished.append(turn)
        self._ready.update((turn.number, turn) for turn in unfinished)
        if self._ready:
            self._is_due.set()
        else:
            self._has_message.clear()
        return message
