"""The events of one turn, passed from the task that runs it to the task that writes to the caller."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from shared.batch_buffer import BatchBuffer
from shared.errors import BallastError
from shared.models.coalescing import coalesce
from shared.models.events import ExecutionEvent, TurnEnd

MAX_EVENTS = 64
"""When more events wait, the turn waits for the writer. Written together they cost about as much as one."""

MAX_JOINED_CHARACTERS = 65_536

HEARTBEAT_SECONDS = 2.0
"""A caller that hears nothing for some times as long takes this process for frozen."""


class EventBuffer(BatchBuffer[ExecutionEvent]):
    """A bounded buffer for one writer and one reader, which takes all waiting events at once, text deltas joined.

    The error of a turn that was refused before its first event is raised by `take`.
    """

    def __init__(self, max_events: int = MAX_EVENTS) -> None:
        super().__init__(max_events)
        self._last: ExecutionEvent | None = None
        self._refusal: BallastError | None = None

    @property
    def has_begun(self) -> bool:
        """Whether any event has been added."""
        return self._last is not None

    @property
    def is_complete(self) -> bool:
        """Whether the terminal event has been added."""
        return isinstance(self._last, TurnEnd)

    async def put(self, event: ExecutionEvent) -> None:
        """Add an event; wait while the buffer is overfull."""
        self._last = event
        self.add((event,))
        if self.is_overfull:
            await self.room()

    def end(self, final_events: Iterable[ExecutionEvent] = (), refusal: BallastError | None = None) -> None:
        """End the turn with `final_events`, which are added even to a full buffer, or with an error for the reader."""
        self._refusal = refusal
        self.close(final_events)

    async def take_beating(self, beat: Callable[[], Awaitable[None]], seconds: float) -> Sequence[ExecutionEvent]:
        """Take as `take` does; call `beat` whenever nothing came for so many seconds."""
        while True:
            try:
                async with asyncio.timeout(seconds):
                    return await self.take()
            except TimeoutError:
                await beat()

    async def all_taken(self) -> None:
        """Wait until no event waits."""
        while self._waiting:
            self._emptied.clear()
            await self._emptied.wait()

    def _hand_out(self, taken: list[ExecutionEvent]) -> Sequence[ExecutionEvent]:
        if not taken:
            self._raise_refusal()
        return coalesce(taken, MAX_JOINED_CHARACTERS)

    def _raise_refusal(self) -> None:
        refusal, self._refusal = self._refusal, None
        try:
            if refusal is not None:
                raise refusal
        finally:
            del refusal  # its frames hold the request: a cycle of both would stay until Python looks for cycles
