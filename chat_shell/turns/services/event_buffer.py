"""The hand-over between the task that runs a turn and the one that writes to the caller."""

import asyncio
from collections.abc import Iterable

from shared.errors import BallastError
from shared.models.events import ExecutionEvent, TextDelta, TurnFailed, TurnFinished

MAX_EVENTS = 64
"""Beyond it the runner waits; a write of so many joined deltas costs about what one alone does."""

MAX_JOINED_CHARACTERS = 65_536


class EventBuffer:
    """Bounded, for one writer and one reader; what waits longer than a write takes leaves together."""

    def __init__(self, max_events: int = MAX_EVENTS) -> None:
        self._max_events = max_events
        self._waiting: list[ExecutionEvent] = []
        self._filled = asyncio.Event()
        self._has_room = asyncio.Event()
        self._last: ExecutionEvent | None = None
        self._ended = False
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
        """Hand over an event; waits while the buffer is full."""
        while len(self._waiting) >= self._max_events:
            self._has_room.clear()
            await self._has_room.wait()
        self._last = event
        self._waiting.append(event)
        self._filled.set()

    def end(self, last_words: Iterable[ExecutionEvent] = (), refusal: BallastError | None = None) -> None:
        """Say that nothing follows but `last_words`, which find room always; then the reader meets `refusal`."""
        self._waiting.extend(last_words)
        self._refusal = refusal
        self._ended = True
        self._filled.set()

    async def take(self) -> tuple[ExecutionEvent, ...]:
        """Return all that waits, text deltas joined; nothing at the end. May be cancelled without loss.

        Raises:
            BallastError: the turn was refused before its first event.
        """
        await self._filled.wait()
        taken, self._waiting = self._waiting, []
        if not self._ended:
            self._filled.clear()
        elif not taken and self._refusal is not None:
            raise self._refusal
        self._has_room.set()
        return join_deltas(taken) if len(taken) > 1 else tuple(taken)


def join_deltas(events: Iterable[ExecutionEvent]) -> tuple[ExecutionEvent, ...]:
    """Join neighbouring text deltas, up to a size; what else happened keeps its place among them."""
    joined: list[ExecutionEvent] = []
    texts: list[str] = []
    characters = 0
    for event in events:
        length = len(event.text) if isinstance(event, TextDelta) else MAX_JOINED_CHARACTERS
        if texts and characters + length > MAX_JOINED_CHARACTERS:
            joined.append(TextDelta(text="".join(texts)))
            texts, characters = [], 0
        if isinstance(event, TextDelta):
            texts.append(event.text)
            characters += length
        else:
            joined.append(event)
    if texts:
        joined.append(TextDelta(text="".join(texts)))
    return tuple(joined)
