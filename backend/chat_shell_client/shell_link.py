"""A stream of `Connect` to one replica of chat_shell, and the turns that run over it."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, Self, TypeAlias

import grpc.aio
from google.protobuf.message import DecodeError

from backend.chat_shell_client.failover import Batch
from backend.chat_shell_client.grpc_channels import LentChannel
from backend.chat_shell_client.refusals import (
    BROKEN_OFF,
    SILENT,
    TOO_LARGE,
    TOO_LATE,
    UNREACHABLE,
    ReplicaDraining,
    error_of_report,
)
from backend.chat_shell_client.silence import SILENT_BEATS
from protos.execution.v1 import chat_shell_pb2, events_pb2
from shared.batch_buffer import BatchBuffer
from shared.errors import (
    BallastError,
    ChatShellSilent,
    ChatShellUnavailable,
    DeadlineExceeded,
    InvalidRequest,
    PayloadTooLarge,
)
from shared.message_size import STREAM_MESSAGE_BYTES
from shared.models.events import ExecutionEvent, TurnEnd
from shared.tracing import TRACEPARENT, trace_headers
from shared.wire import event_from_proto, report_from_proto

CREDIT_BYTES = 32_768
"""Half of what chat_shell sends of a turn before the first credit: it is told of bytes taken once they are so many."""

TAG_BYTES = 8
"""More than a message adds to each command in it."""

Call: TypeAlias = "grpc.aio.StreamStreamCall[chat_shell_pb2.ToShell, chat_shell_pb2.FromShell]"


class LinkedTurn(BatchBuffer[Any]):
    """The events of a turn over a link. They wait here encoded: what is wrong with one is a matter of this turn."""

    def __init__(self, link: "ShellLink", number: int) -> None:
        super().__init__(0)
        self._link = link
        self._number = number
        self._timer: asyncio.TimerHandle | None = None
        self._begun_event = bytearray()
        self._arrived_bytes = 0
        self._uncredited_bytes = 0
        self._error: BallastError | None = None
        self._last: ExecutionEvent | None = None

    def limit(self, seconds: float) -> None:
        """End the turn in so many seconds, if it has not ended by then."""
        late = DeadlineExceeded(TOO_LATE)
        self._timer = asyncio.get_running_loop().call_later(seconds, self.fail, late)

    def __aiter__(self) -> Self:
        """Iterate over batches of events."""
        return self

    def __anext__(self) -> Coroutine[Any, Any, Any]:
        """Wait for events and return all that have arrived.

        Raises:
            BallastError: the turn has ended without a last event.
        """
        return self.take()

    async def aclose(self) -> None:
        """Read no further; a turn that runs is cancelled."""
        self._leave()

    def _hand_out(self, taken: list[bytes]) -> Batch:
        arrived, self._arrived_bytes = self._arrived_bytes, 0
        self._credit(arrived)
        if taken:
            return self._decode(taken)
        self._leave()
        if not isinstance(self._last, TurnEnd):
            self._raise_error()
        raise StopAsyncIteration

    def _decode(self, taken: list[bytes]) -> Batch:
        try:
            events = tuple(map(decode_event, taken))
        except ChatShellUnavailable:
            self._leave()  # whoever reads it need not close what has failed
            raise
        self._last = events[-1]
        return events

    def _leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._link.forget(self._number)

    def arrive(self, frame: chat_shell_pb2.TurnFrame, max_bytes: int) -> None:
        """Take what chat_shell has sent."""
        events: Sequence[bytes] = list(frame.events)  # not the message, which holds what it says of others, too
        self._arrived_bytes += sum(map(len, events))
        if self._begun_event and events:
            events = (bytes(self._begun_event) + events[0], *events[1:])
            self._begun_event.clear()
        if frame.piece:
            self._begun_event += frame.piece
            self._credit(len(frame.piece))
            if len(self._begun_event) > max_bytes:
                self.fail(PayloadTooLarge(TOO_LARGE))
        if events:
            self.add(events)
        if frame.is_last:
            self._end(frame)

    def fail(self, error: BallastError) -> None:
        """End it with an error, which is raised behind the events that have arrived."""
        if not self._is_closed:
            self._error = error
            self.close()

    def lose(self, *, is_silent: bool) -> None:
        """End it because its link has ended, or its replica has fallen silent."""
        if is_silent:
            self.fail(ChatShellSilent(SILENT))
        has_begun = self._last is not None or self._waiting or self._begun_event
        self.fail(ChatShellUnavailable(BROKEN_OFF if has_begun else UNREACHABLE))

    def _raise_error(self) -> None:
        error, self._error = self._error or ChatShellUnavailable(BROKEN_OFF), None
        try:
            raise error
        finally:
            del error  # its frames hold the request: a cycle of both would stay until Python looks for cycles

    def _end(self, frame: chat_shell_pb2.TurnFrame) -> None:
        self._link.forget(self._number, is_over=True)
        if frame.HasField("refusal"):
            error = error_of_report(report_from_proto(frame.refusal))
            if isinstance(error, ReplicaDraining):
                self._link.send_away()
            self.fail(error)
        self.close()

    def _credit(self, count: int) -> None:
        self._uncredited_bytes += count
        if self._uncredited_bytes >= CREDIT_BYTES and not self._is_closed:
            command = chat_shell_pb2.TurnCommand(turn=self._number, credit_bytes=self._uncredited_bytes)
            self._link.say(command)
            self._uncredited_bytes = 0


class ShellLink:
    """Carries turns to one replica. One task reads what it sends, one writes.

    What is to be said while a message is on its way is joined in the next one. A replica says something every
    `heartbeat_seconds` at least; 0 is one of a release that does not, and may be silent for long.
    """

    def __init__(
        self, call: Call, connection: LentChannel, hello: chat_shell_pb2.Hello, max_message_bytes: int
    ) -> None:
        self.connection = connection
        self.replica = hello.replica
        self.takes_turns = True
        self.is_silent = False
        self._heartbeat_seconds = hello.heartbeat_milliseconds / 1000
        self._missed_beats = 0
        self._call = call
        self._max_message_bytes = max_message_bytes
        self._turns: dict[int, LinkedTurn] = {}
        self._begun = 0
        self._unsaid: list[chat_shell_pb2.TurnCommand] = []
        self._has_to_say = asyncio.Event()

    @property
    def running(self) -> int:
        """How many turns run over it."""
        return len(self._turns)

    def is_to(self, replica: str, connection: LentChannel) -> bool:
        """Whether it takes turns to this replica over this channel."""
        return self.takes_turns and (self.replica, self.connection) == (replica, connection)

    def begin(self, body: bytes, seconds: float | None) -> LinkedTurn:
        """Begin a turn with an encoded request; whoever reads it closes it in the end."""
        self._begun += 1
        self._turns[self._begun] = turn = LinkedTurn(self, self._begun)
        if seconds is not None:
            turn.limit(seconds)
        parent = trace_headers().get(TRACEPARENT, "")
        start = chat_shell_pb2.StartTurn(request=body, left_seconds=seconds, traceparent=parent)
        self.say(chat_shell_pb2.TurnCommand(turn=self._begun, start=start))
        return turn

    def say(self, command: chat_shell_pb2.TurnCommand) -> None:
        """Send a command with all others of this tick of the loop."""
        self._unsaid.append(command)
        self._has_to_say.set()

    def forget(self, number: int, *, is_over: bool = False) -> None:
        """Let a turn go; unless it is over, it is cancelled. Forgetting it again changes nothing."""
        if self._turns.pop(number, None) is not None and not is_over:
            self.say(chat_shell_pb2.TurnCommand(turn=number, cancel=chat_shell_pb2.CancelTurn()))
        elif not self.takes_turns:
            self._has_to_say.set()

    def send_away(self) -> None:
        """Take no further turns; once none runs, the stream ends."""
        self.takes_turns = False
        self._has_to_say.set()

    async def carry(self) -> None:
        """Carry turns until the stream ends, or its replica is silent; those that run then end with that error."""
        listening = asyncio.timeout(None)
        try:
            with suppress(TimeoutError):
                async with listening, asyncio.TaskGroup() as group:
                    beside = [group.create_task(self._write()), group.create_task(self._count_missed_beats(listening))]
                    await self._read()
                    for task in beside:
                        task.cancel()
        finally:
            self.takes_turns, self.is_silent = False, listening.expired()
            self._call.cancel()  # without this an abandoned stream goes on, on both sides (grpc/grpc#43462)
            for turn in tuple(self._turns.values()):
                turn.lose(is_silent=self.is_silent)

    async def _count_missed_beats(self, listening: asyncio.Timeout) -> None:
        """Stop listening to a replica that has missed too many beats.

        Beats are counted and not seconds: while this process stands still, it hears nothing and counts nothing.
        """
        while self._heartbeat_seconds and self._missed_beats <= SILENT_BEATS:
            await asyncio.sleep(self._heartbeat_seconds)
            self._missed_beats += 1
        if self._heartbeat_seconds:
            listening.reschedule(asyncio.get_running_loop().time())

    async def _read(self) -> None:
        try:
            while isinstance(message := await self._call.read(), chat_shell_pb2.FromShell):
                self._missed_beats = 0
                if message.HasField("go_away"):
                    self.send_away()
                for frame in message.frames:
                    turn = self._turns.get(frame.turn)
                    if turn is not None:  # else it was left
                        turn.arrive(frame, self._max_message_bytes)
        except grpc.aio.AioRpcError:
            return

    async def _write(self) -> None:
        try:
            while self.takes_turns or self._turns or self._unsaid:
                await self._has_to_say.wait()
                if message := self._take_message():
                    await self._call.write(message)
            await self._call.done_writing()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return  # the stream has ended: so the reader says

    def _take_message(self) -> chat_shell_pb2.ToShell | None:
        message, taken_bytes, taken = chat_shell_pb2.ToShell(), 0, 0
        for command in self._unsaid:
            taken_bytes += command.ByteSize() + TAG_BYTES
            if taken and taken_bytes > STREAM_MESSAGE_BYTES:
                break
            message.commands.append(command)
            taken += 1
        del self._unsaid[:taken]
        if not self._unsaid:
            self._has_to_say.clear()
        return message if taken else None


def decode_event(encoded: bytes) -> ExecutionEvent:
    """Read an event.

    Raises:
        ChatShellUnavailable: it is none.
    """
    try:
        return event_from_proto(events_pb2.ExecutionEvent.FromString(encoded))
    except DecodeError as error:
        raise ChatShellUnavailable("The model runner sent what is no event.") from error
    except InvalidRequest as error:
        raise ChatShellUnavailable(f"The model runner sent what is no event: {error.message}") from error
