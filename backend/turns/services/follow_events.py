"""Following a turn's events from any number on: kept and new events, or rebuilt ones where events are lost."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import cast

from backend.conversations.domain.responses import StoredResponse
from backend.conversations.ports.conversations import TurnStore
from backend.turns.domain.response_events import TERMINAL_EVENTS, LoggedEvent, created_event, terminal_event
from backend.turns.ports.events import EventLog
from shared.errors import Unavailable

EventBatch = tuple[LoggedEvent, ...]
LAST_EVENT_TYPES = frozenset(TERMINAL_EVENTS.values())

END_SECONDS = 2.0
"""How long to wait for the next event of a turn whose end is stored; after that the event counts as lost."""


class FollowEvents:
    """Reads events for any number of readers, each at its own pace."""

    def __init__(self, turns: TurnStore, events: EventLog, end_seconds: float = END_SECONDS) -> None:
        self._turns = turns
        self._events = events
        self._end_seconds = end_seconds

    async def __call__(
        self, response: StoredResponse, after: int, *, with_results: bool
    ) -> AsyncGenerator[EventBatch, None]:
        """Yield events with a number above `after` (-1: all) until the terminal one.

        When events are no longer kept: `response.created`, number 0, and the terminal event with its own number.

        Raises:
            Unavailable: the events of a running turn cannot be read. Retryable.
        """
        newest, is_over = after, False
        lost: Unavailable | None = None
        try:
            async with aclosing(self._kept(response, after)) as batches:
                async for batch in batches:
                    newest, is_over = batch[-1].sequence_number, batch[-1].type in LAST_EVENT_TYPES
                    yield batch
        except Unavailable as error:
            lost = error
        if is_over:
            return
        stored = await self._turns.find(response.id) or response
        if lost is not None and not stored.status.is_terminal:
            raise lost
        rebuilt = _rebuilt_events(stored, with_results=with_results)
        if rest := tuple(event for event in rebuilt if event.sequence_number > newest):
            yield rest

    async def first_and_last(
        self, response: StoredResponse, after: int, shown: Callable[[StoredResponse], Awaitable[StoredResponse]]
    ) -> AsyncGenerator[EventBatch, None]:
        """Yield only the first event and, at the turn's end, the last one: for a reader who may not read the answer.

        `shown` reduces the stored response to what this reader may see.

        Raises:
            Unavailable: the events of a running turn cannot be read. Retryable.
        """
        first, *_ = _rebuilt_events(response, with_results=False)
        if first.sequence_number > after:
            yield (first,)
        if not response.status.is_terminal:
            async with aclosing(self(response, after, with_results=False)) as batches:
                async for _ in batches:
                    """The events are awaited and not passed on."""
        ended = await shown(await self._turns.find(response.id) or response)
        _, *last = _rebuilt_events(ended, with_results=False)
        if last and last[0].sequence_number > after:
            yield tuple(last)

    async def _kept(self, response: StoredResponse, after: int) -> AsyncGenerator[EventBatch, None]:
        if not await self._events.exists(response.id):
            return
        stream = cast(AsyncGenerator[EventBatch, None], self._events.read(response.id, after))
        wait_seconds = self._end_seconds if response.status.is_terminal else None
        async with aclosing(stream) as batches:
            while batch := await _next_within(batches, wait_seconds):
                yield batch


async def _next_within(batches: AsyncGenerator[EventBatch, None], seconds: float | None) -> EventBatch | None:
    """Return the next events, or None at the end of the log or when none came in time."""
    try:
        async with asyncio.timeout(seconds):
            return await anext(batches, None)
    except TimeoutError:
        return None


def _rebuilt_events(response: StoredResponse, *, with_results: bool) -> tuple[LoggedEvent, ...]:
    created = created_event(response.body)
    if not response.status.is_terminal:
        return (created,)
    return created, terminal_event(response.status, response.body, response.last_event, with_results=with_results)
