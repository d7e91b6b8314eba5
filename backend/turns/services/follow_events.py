"""A turn's events, from any point on: those that are kept, those that come, and what stands for lost ones."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import cast

from backend.conversations.domain.responses import StoredResponse
from backend.conversations.ports.conversations import TurnStore
from backend.turns.domain.response_events import LoggedEvent, encode_event
from backend.turns.domain.response_object import created_body, shown_body
from backend.turns.domain.response_projection import TERMINAL_EVENTS
from backend.turns.ports.events import EventLog
from shared.errors import Unavailable

EventBatch = tuple[LoggedEvent, ...]
LAST_EVENT_TYPES = frozenset(TERMINAL_EVENTS.values())

END_SECONDS = 2.0
"""For the next event of a turn whose end is stored, which is told right behind; where it is not, it got lost."""


class FollowEvents:
    """Reads events; any number of readers, each at its own pace."""

    def __init__(self, turns: TurnStore, events: EventLog, end_seconds: float = END_SECONDS) -> None:
        self._turns = turns
        self._events = events
        self._end_seconds = end_seconds

    async def __call__(
        self, response: StoredResponse, after: int, *, with_results: bool
    ) -> AsyncGenerator[EventBatch, None]:
        """Yield events with a number above `after` (-1: all) until the terminal one.

        When they are no longer kept: `response.created`, number 0, and the terminal event under its own.

        Raises:
            Unavailable: the events of a running turn are out of reach. Retryable.
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
        rest = tuple(event for event in _stand_ins(stored, with_results=with_results) if event.sequence_number > newest)
        if rest:
            yield rest

    async def without_words(
        self, response: StoredResponse, after: int, shown: Callable[[StoredResponse], Awaitable[StoredResponse]]
    ) -> AsyncGenerator[EventBatch, None]:
        """Yield an event stream for who may not have the words: the first event and, at the turn's end, the last one.

        `shown` makes of the stored response what this reader gets of it.

        Raises:
            Unavailable: the events of a running turn are out of reach. Retryable.
        """
        first, *_ = _stand_ins(response, with_results=False)
        if first.sequence_number > after:
            yield (first,)
        if not response.status.is_terminal:
            async with aclosing(self(response, after, with_results=False)) as batches:
                async for _ in batches:
                    """Awaited, and not told."""
        ended = await shown(await self._turns.find(response.id) or response)
        _, *last = _stand_ins(ended, with_results=False)
        if last and last[0].sequence_number > after:
            yield tuple(last)

    async def _kept(self, response: StoredResponse, after: int) -> AsyncGenerator[EventBatch, None]:
        if not await self._events.exists(response.id):
            return
        stream = cast(AsyncGenerator[EventBatch, None], self._events.read(response.id, after))
        patience_seconds = self._end_seconds if response.status.is_terminal else None
        async with aclosing(stream) as batches:
            while batch := await _next_within(batches, patience_seconds):
                yield batch


async def _next_within(batches: AsyncGenerator[EventBatch, None], seconds: float | None) -> EventBatch | None:
    """Return the next events, or None when there are none any more, or none in time."""
    try:
        async with asyncio.timeout(seconds):
            return await anext(batches, None)
    except TimeoutError:
        return None


def _stand_ins(response: StoredResponse, *, with_results: bool) -> tuple[LoggedEvent, ...]:
    created = {"type": "response.created", "sequence_number": 0, "response": created_body(response.body)}
    if not response.status.is_terminal:
        return (encode_event(created),)
    last = {
        "type": TERMINAL_EVENTS[response.status],
        "sequence_number": response.last_event,
        "response": shown_body(response.body, with_results=with_results),
    }
    return encode_event(created), encode_event(last)
