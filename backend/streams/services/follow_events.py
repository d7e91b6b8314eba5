"""Following a turn's events from any number on: kept and new events, and how the turn ended where some are lost."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import cast

from backend.conversations.domain.responses import StoredResponse
from backend.conversations.ports.conversations import TurnStore
from backend.openai_api.domain.response_events import (
    TERMINAL_TYPES,
    LoggedEvent,
    break_off,
    build_created_event,
    terminal_event,
)
from backend.streams.ports.events import EventLog
from backend.streams.services.reader_rights import ReaderRights
from shared.errors import EventsLost, Unavailable
from shared.models.error_reports import report_of
from shared.models.events import ErrorReport

EventBatch = tuple[LoggedEvent, ...]
LATE_SECONDS = 3.0
"""How long the last events of a turn whose end is stored may be missing from an event log that can be read.

Their writer tries again at least as often. The log of a later writer is cut off.
"""

OUTAGE_FACTOR = 4
"""How many times as long they may be missing while nobody can write, not even to cut the log off.

That is a little more than the 10 s for which a writer tries.
"""

UNKNOWN_FACTOR = 2
"""How many times as long a reader who hears nothing waits for a database that cannot tell of the turn's end."""

RIGHTS_LOOK_SECONDS = 3.0
"""Events wait no longer than so for a look at their reader's rights; while the database is away, nobody's change."""

OPENING_SECONDS = 10.0
"""How long a reader waits for the first event of a turn that is stored: its process may be at it, or may have died."""

_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.3

EVENTS_LOST = report_of(
    EventsLost(
        "Events of this response are lost or cannot be read now. Its turn goes on: where it is stored, "
        "GET /v1/responses/{id} has all of it once it has ended."
    )
)


class FollowEvents:
    """Reads events for any number of readers, each at its own pace."""

    def __init__(
        self,
        turns: TurnStore,
        events: EventLog,
        late_seconds: float = LATE_SECONDS,
        opening_seconds: float = OPENING_SECONDS,
    ) -> None:
        self._turns = turns
        self._events = events
        self._late_seconds = late_seconds
        self._opening_seconds = opening_seconds

    async def __call__(
        self, response: StoredResponse, after: int, *, with_results: bool, rights: ReaderRights | None = None
    ) -> AsyncGenerator[EventBatch, None]:
        """Yield events with a number above `after` (-1: all) until the terminal one, or until the reader's rights end.

        When events are no longer kept: `response.created`, number 0, and the terminal event with its own number. When
        some are missing for a reader who has got others, or those of a running turn cannot be read any more or do not
        begin: an error event with the code `events_lost`. The turn goes on; its answer can be read when it has ended.
        """
        newest, silence = after, _Silence(self, response)
        with suppress(Unavailable):
            await self._wait_for_first(response)
            stream = cast(AsyncGenerator[EventBatch, None], self._events.read(response.id, after))
            async with aclosing(stream) as batches:
                async for batch in batches:
                    may_break = not batch or _is_look_due(rights)  # else no delta takes this step
                    if may_break and (report := await _find_break(rights, silence, None if batch else newest)):
                        yield break_off(response.body, report, newest)
                        return
                    if batch and batch[-1].sequence_number == newest + len(batch):
                        newest = batch[-1].sequence_number
                        yield batch
                        if batch[-1].type in TERMINAL_TYPES:
                            return
                    elif batch or silence.is_rest_lost:
                        break
        rest = await self._rest(response, (after, newest), with_results=with_results)
        if report := await _find_loss(rights):
            yield break_off(response.body, report, newest)
        elif rest:
            yield rest

    async def _rest(self, response: StoredResponse, shown: tuple[int, int], *, with_results: bool) -> EventBatch:
        """Return what ends the stream of a reader for whom the event log has no more.

        `shown` are the number after which the reader began, and the newest one that they have got. The events between
        are not rebuilt: others may have got them, in other pieces under the same numbers.
        """
        after, newest = shown
        stored = response
        with suppress(Unavailable):
            stored = await self._turns.find(response.id) or response
        # A reader who has got nothing here, or lacks nothing else, is shown the end.
        if stored.status.is_terminal and newest in (after, stored.last_event - 1):
            first_and_last = _rebuilt_events(stored, with_results=with_results)
            return tuple(event for event in first_and_last if event.sequence_number > newest)
        return break_off(stored.body, EVENTS_LOST, newest)

    async def first_and_last(
        self,
        response: StoredResponse,
        after: int,
        shown: Callable[[StoredResponse], Awaitable[StoredResponse]],
        rights: ReaderRights | None = None,
    ) -> AsyncGenerator[EventBatch, None]:
        """Yield only the first event and, at the turn's end, the last one: for a reader who may not read the answer.

        `shown` reduces the stored response to what this reader may see.
        """
        if report := await _find_loss(rights):
            yield break_off(response.body, report, after)
            return
        first, *_ = _rebuilt_events(response, with_results=False)
        if first.sequence_number > after:
            yield (first,)
        if not response.status.is_terminal:
            async with aclosing(self(response, after, with_results=False, rights=rights)) as batches:
                async for _ in batches:
                    """The events are awaited and not passed on."""
        if report := await _find_loss(rights):
            yield break_off(response.body, report, after)
            return
        ended = await shown(await self._turns.find(response.id) or response)
        _, *last = _rebuilt_events(ended, with_results=False)
        if not last:
            yield break_off(ended.body, EVENTS_LOST, max(after, 0))
        elif last[0].sequence_number > after:
            yield tuple(last)

    async def is_lost(self, response: StoredResponse, late_seconds: float) -> bool:
        """Cut off a log whose last events are so late; while it takes no writes, they may come when it does again."""
        if late_seconds < self._late_seconds:
            return False
        try:
            return await self._events.cut_off(response.id)
        except Unavailable:
            return late_seconds >= OUTAGE_FACTOR * self._late_seconds

    @property
    def unknown_seconds(self) -> float:
        """How long a reader who hears nothing waits for a database that cannot tell whether the turn has ended."""
        return UNKNOWN_FACTOR * self._late_seconds

    async def _wait_for_first(self, response: StoredResponse) -> None:
        """Wait until the events of a turn that is stored as running are there, or its end is stored.

        Raises:
            Unavailable: neither came in time.
        """
        clock = asyncio.get_running_loop().time
        give_up_at, pause_seconds = clock() + self._opening_seconds, _FIRST_PAUSE_SECONDS
        while not (response.status.is_terminal or await self._is_readable(response)):
            if clock() >= give_up_at:
                raise EventsLost(EVENTS_LOST.message)
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)

    async def _is_readable(self, response: StoredResponse) -> bool:
        """Whether a turn has events or has ended; while the event log cannot tell, it has none."""
        with suppress(Unavailable):
            return await self._events.exists(response.id) or await self.has_ended(response)
        return False

    async def has_ended(self, response: StoredResponse) -> bool:
        """Whether the end of the turn is stored.

        Of a turn that is not stored the events alone tell the end: this process writes them.

        Raises:
            Unavailable: the database cannot tell.
        """
        if not response.body["store"]:
            return False
        stored = await self._turns.find(response.id)
        return stored is None or stored.status.is_terminal


class _Silence:
    """What a reader asks whenever no event has come; `is_rest_lost` once it stays so after the turn's end."""

    def __init__(self, following: FollowEvents, response: StoredResponse) -> None:
        self.is_rest_lost = False
        self._following = following
        self._response = response
        self._clock = asyncio.get_running_loop().time
        self._ended_at: float | None = None
        self._unknown_since = 0.0
        self._newest: int | None = None

    async def is_unknown(self, newest: int) -> bool:
        """Look how the turn stands behind the newest number; return whether nobody has been able to tell for long."""
        if self._ended_at is not None:
            self.is_rest_lost = await self._following.is_lost(self._response, self._clock() - self._ended_at)
            return False
        if newest != self._newest:
            self._unknown_since, self._newest = self._clock(), newest
        most = self._following.unknown_seconds
        try:
            async with asyncio.timeout(most):
                has_ended = await self._following.has_ended(self._response)
        except TimeoutError:
            return True
        except Unavailable:
            return self._clock() - self._unknown_since >= most
        self._unknown_since = self._clock()
        self._ended_at = self._unknown_since if has_ended else None
        return False


async def _find_break(rights: ReaderRights | None, silence: _Silence, newest: int | None) -> ErrorReport | None:
    """Return why a stream breaks off here; `newest` is the newest number where no event has come."""
    with suppress(TimeoutError):
        if rights is not None and _is_look_due(rights):
            async with asyncio.timeout(RIGHTS_LOOK_SECONDS):
                if report := await rights.find_loss():
                    return report
    return EVENTS_LOST if newest is not None and await silence.is_unknown(newest) else None


def _is_look_due(rights: ReaderRights | None) -> bool:
    return rights is not None and rights.is_look_due


async def _find_loss(rights: ReaderRights | None) -> ErrorReport | None:
    return await rights.find_loss() if rights is not None else None


def _rebuilt_events(response: StoredResponse, *, with_results: bool) -> tuple[LoggedEvent, ...]:
    created = build_created_event(response.body)
    if not response.status.is_terminal:
        return (created,)
    return created, terminal_event(response.status, response.body, response.last_event, with_results=with_results)
