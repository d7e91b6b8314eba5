"""Following a turn's events from any number on: kept and new events, or rebuilt ones where events are lost."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import cast

from backend.conversations.domain.responses import StoredResponse
from backend.conversations.ports.conversations import TurnStore
from backend.turns.domain.response_events import (
    TERMINAL_EVENTS,
    LoggedEvent,
    broken_off_events,
    created_event,
    terminal_event,
)
from backend.turns.ports.events import EventLog
from shared.errors import Unavailable
from shared.models.error_reports import report_of

EventBatch = tuple[LoggedEvent, ...]
EVENTS_AWAY = report_of(Unavailable("The events of this response cannot be read now."))
LAST_EVENT_TYPES = frozenset(TERMINAL_EVENTS.values())


class FollowEvents:
    """Reads events for any number of readers, each at its own pace."""

    def __init__(self, turns: TurnStore, events: EventLog) -> None:
        self._turns = turns
        self._events = events

    async def __call__(
        self, response: StoredResponse, after: int, *, with_results: bool
    ) -> AsyncGenerator[EventBatch, None]:
        """Yield events with a number above `after` (-1: all) until the terminal one.

        When events are no longer kept: `response.created`, number 0, and the terminal event with its own number. When
        those of a running turn cannot be read any more: an error event and `response.failed`; the turn goes on, and
        its answer can be read when it has ended.
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
        if not is_over:
            rest = await self._rest(response, newest, lost, with_results=with_results)
            if rest:
                yield rest

    async def _rest(
        self, response: StoredResponse, newest: int, lost: Unavailable | None, *, with_results: bool
    ) -> EventBatch:
        """Return what follows the newest event where the event log says no more."""
        try:
            stored = await self._turns.find(response.id) or response
        except Unavailable as error:
            stored, lost = response, lost or error
        rebuilt = _rebuilt_events(stored, with_results=with_results)
        rest = tuple(event for event in rebuilt if event.sequence_number > newest)
        if lost is None or stored.status.is_terminal:
            return rest
        return rest + broken_off_events(stored.body, report_of(lost), max(newest, 0))

    async def first_and_last(
        self, response: StoredResponse, after: int, shown: Callable[[StoredResponse], Awaitable[StoredResponse]]
    ) -> AsyncGenerator[EventBatch, None]:
        """Yield only the first event and, at the turn's end, the last one: for a reader who may not read the answer.

        `shown` reduces the stored response to what this reader may see.
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
        if not last:
            yield broken_off_events(ended.body, EVENTS_AWAY, max(after, 0))
        elif last[0].sequence_number > after:
            yield tuple(last)

    async def _kept(self, response: StoredResponse, after: int) -> AsyncGenerator[EventBatch, None]:
        """Yield the events of the log; where it is silent and the end of the turn is stored, the rest is lost."""
        if not await self._events.exists(response.id):
            return
        stream = cast(AsyncGenerator[EventBatch, None], self._events.read(response.id, after))
        async with aclosing(stream) as batches:
            async for batch in batches:
                if batch:
                    yield batch
                elif await self._has_ended(response):
                    return

    async def _has_ended(self, response: StoredResponse) -> bool:
        """Whether the end of the turn is stored; while the database cannot tell, it is not."""
        try:
            stored = await self._turns.find(response.id)
        except Unavailable:
            return False
        return stored is None or stored.status.is_terminal


def _rebuilt_events(response: StoredResponse, *, with_results: bool) -> tuple[LoggedEvent, ...]:
    created = created_event(response.body)
    if not response.status.is_terminal:
        return (created,)
    return created, terminal_event(response.status, response.body, response.last_event, with_results=with_results)
