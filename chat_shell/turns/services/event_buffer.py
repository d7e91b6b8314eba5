"""The events of one turn, between the task that runs it and the one that writes to the caller."""

from collections.abc import Iterable

from shared.batch_buffer import BatchBuffer
from shared.errors import BallastError
from shared.models.coalescing import coalesced
from shared.models.events import ExecutionEvent, TurnFailed, TurnFinished

MAX_EVENTS = 64
"""Beyond it the runner waits; a write of so many joined deltas costs about what one alone does."""

MAX_JOINED_CHARACTERS = 65_536


class EventBuffer:
    """Bounded, for one writer and one reader; events that wait longer than a write takes are sent together."""

    def __init__(self, max_events: int = MAX_EVENTS) -> None:
        self._events = BatchBuffer[ExecutionEvent](max_events)
        self._last: ExecutionEvent | None = None
        self._refusal: BallastError | None = None

    @property
    def begun(self) -> bool:
        """Whether any event was put."""
        return self._last is not None

    @property
    def complete(self) -> bool:
        """Whether the terminal event was put."""
        return isinstance(self._last, TurnFinished | TurnFailed)

    async def put(self, event: ExecutionEvent) -> None:
        """Add an event; waits while the buffer is full."""
        self._last = event
        await self._events.put((event,))

    def end(self, last_words: Iterable[ExecutionEvent] = (), refusal: BallastError | None = None) -> None:
        """End the turn with `last_words`, for which there is always room, or with an error for the reader."""
        self._refusal = refusal
        self._events.close(last_words)

    async def take(self) -> tuple[ExecutionEvent, ...]:
        """Return all waiting events, text deltas joined; nothing at the end. Cancelling it loses nothing.

        Raises:
            BallastError: the turn was refused before its first event.
        """
        taken = await self._events.take()
        if not taken and self._refusal is not None:
            raise self._refusal
        return coalesced(taken, MAX_JOINED_CHARACTERS)
