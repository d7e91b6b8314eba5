"""A turn on a stream of `Connect`: its events wait here for the frames of the stream."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from chat_shell.servers.grpc.messages import encode_event
from chat_shell.turns.services.event_buffer import EventBuffer
from protos.execution.v1 import chat_shell_pb2, events_pb2
from shared.errors import BallastError, InternalError
from shared.models.error_reports import report_of
from shared.models.events import (
    ExecutionEvent,
    FunctionCallDelta,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    TextLogprobs,
)
from shared.wire import report_to_proto

FIRST_CREDIT_BYTES = 65_536
"""What the caller takes of a turn before it has read any of it."""

_STREAMED = frozenset({TextDelta, TextLogprobs, ReasoningDelta, RefusalDelta, FunctionCallDelta})


class LinkedTurn(EventBuffer):
    """A turn whose caller bounds by credits how many bytes of events are sent; without credit its events wait here.

    `on_ready` is called when a frame of it can be written.
    """

    def __init__(self, number: int, on_ready: Callable[["LinkedTurn"], None], *, knows_newer: bool) -> None:
        super().__init__()
        self.number = number
        self.task: asyncio.Task[None] | None = None
        self._on_ready = on_ready
        self._knows_newer = knows_newer
        self._credit_bytes = FIRST_CREDIT_BYTES
        self._encoded: deque[bytes | memoryview] = deque()
        self._report: events_pb2.ErrorReport | None = None
        self._is_written = asyncio.Event()
        self._has_said = set[type[ExecutionEvent]]()
        self._is_further = False

    def add(self, elements: Iterable[ExecutionEvent]) -> None:
        """Add events without waiting for room."""
        added = tuple(elements)
        for kind in map(type, added):
            self._is_further = kind in self._has_said
            if kind in _STREAMED:
                self._has_said.add(kind)
            else:
                self._has_said.clear()
        super().add(added)

    @property
    def may_wait(self) -> bool:
        """Whether its newest event is a delta behind others of its kind, for which there is room."""
        return self._is_further and not (self._is_closed or self.is_overfull)

    def wake(self) -> None:
        """Tell that there are events to be written, or the end."""
        if self.has_frame:
            self._on_ready(self)

    def end(self, final_events: Iterable[ExecutionEvent] = (), refusal: BallastError | None = None) -> None:
        """End the turn with `final_events`, or with an error for the caller."""
        if refusal is not None:  # of the error itself nothing is kept: its frames hold the request
            self._report = report_to_proto(report_of(refusal))
        self.close(final_events)

    async def all_taken(self) -> None:
        """Wait until the last frame was taken."""
        await self._is_written.wait()

    def credit(self, count: int) -> None:
        """Let so many bytes more be sent."""
        self._credit_bytes += count
        self.wake()

    @property
    def has_frame(self) -> bool:
        """Whether a frame of it can be written."""
        is_waiting = bool(self._encoded or self._waiting)
        return bool(self._credit_bytes) if is_waiting else self._is_closed and not self._is_written.is_set()

    def write_frame(self, frame: chat_shell_pb2.TurnFrame, most_bytes: int) -> int:
        """Write what waits, up to a number of bytes; an event that is longer goes in pieces. Return the number."""
        frame.turn = self.number
        most = room = min(most_bytes, self._credit_bytes)
        while room and (self._encoded or self._encode_waiting()):
            encoded = self._encoded.popleft()
            if len(encoded) > room:
                frame.piece = bytes(encoded[:room])
                self._encoded.appendleft(memoryview(encoded)[room:])
                room = 0
            else:
                frame.events.append(bytes(encoded))
                room -= len(encoded)
        self._credit_bytes -= most - room
        if self._is_closed and not (self._encoded or self._waiting):
            frame.is_last = True
            if self._report is not None:
                frame.refusal.CopyFrom(self._report)
            self._is_written.set()
        return most - room

    def _encode_waiting(self) -> bool:
        """Encode all events that wait; return whether there were any. One that cannot be written ends the turn."""
        try:
            for event in self.take_ready() if self._waiting else ():
                if self._knows_newer or not isinstance(event, FunctionCallDelta):
                    self._encoded.append(encode_event(event))
        except InternalError as error:
            self._encoded.clear()
            self.end(refusal=error)
            if self.task is not None:
                self.task.cancel()
        return bool(self._encoded)
