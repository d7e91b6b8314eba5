"""The events of one turn, passed from the task that runs it to the task that writes to the caller."""

from collections.abc import Iterable

from shared.batch_buffer import BatchBuffer
from shared.errors import BallastError
from shared.models.coalescing import coalesce
from shared.models.events import (
    ExecutionEvent,
    FunctionCallDelta,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    TurnEnd,
)
from shared.wakeup_batcher import WakeupBatcher

MAX_EVENTS = 64
"""When so many events wait, the turn waits for the writer. Written together they cost about as much as one."""

MAX_JOINED_CHARACTERS = 65_536

_DELTAS = (TextDelta, ReasoningDelta, RefusalDelta, FunctionCallDelta)


class EventBuffer:
    """A bounded buffer for one writer and one reader, which takes all waiting events at once.

    A delta behind one of its own kind waits for the next of the `rounds`, or for any other event of the turn. All else
    goes at once, and so does the first delta of an answer.
    """

    def __init__(self, rounds: WakeupBatcher, max_events: int = MAX_EVENTS) -> None:
        self._rounds = rounds
        self._events = BatchBuffer[ExecutionEvent](max_events)
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
        """Add an event; wait while the buffer is full."""
        may_wait = isinstance(event, _DELTAS) and type(event) is type(self._last)
        self._last = event
        await self._events.put((event,), wakes=not may_wait)
        if may_wait:
            self._rounds.join(self._events.wake)

    def end(self, final_events: Iterable[ExecutionEvent] = (), refusal: BallastError | None = None) -> None:
        """End the turn with `final_events`, which are added even to a full buffer, or with an error for the reader."""
        self._refusal = refusal
        self._events.close(final_events)

    async def take(self) -> tuple[ExecutionEvent, ...]:
        """Return all waiting events with adjacent text deltas joined, or nothing at the end of the turn.

        No event is lost when it is cancelled.

        Raises:
            BallastError: the turn was refused before its first event.
        """
        taken = await self._events.take()
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
