"""The event log in memory."""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncGenerator, Sequence
from weakref import WeakValueDictionary

from backend.foundation.services.wakeups import Wakeups
from backend.openai_api.domain.response_events import LoggedEvent, bytes_in
from backend.streams.memory.ended_events import MOST_BYTES, CallLater, EndedEvents, pack_events
from backend.streams.ports.events import MOST_RESPONSE_BYTES
from shared.errors import Conflict, InternalError, Unavailable

SILENCE_SECONDS = 2.0
"""A reader is told after so long that nothing came."""

BYTES_PACKED_HERE = 2**20
"""Packed in some 10 ms; a log of the largest size takes half a second."""

HAVE_ENDED = "The events of this response have ended."

MOST_OPEN_BYTES = 512 * 2**20
"""Room for the events of all running turns: 1,000 turns with some 1,500 deltas each."""


class MemoryEventLog:
    """Keeps the events of running turns as values and those of ended turns compressed, for a time and within a bound.

    A log is deleted `retention_seconds` after its close, or up to a sixtieth later, and earlier where `most_bytes` of
    newer ones have come. The events of running turns together take no more than `most_open_bytes`. `call_later` is the
    timer; the default is that of the running event loop.
    """

    def __init__(
        self,
        retention_seconds: float,
        call_later: CallLater | None = None,
        silence_seconds: float = SILENCE_SECONDS,
        most_bytes: int = MOST_BYTES,
        most_open_bytes: int = MOST_OPEN_BYTES,
    ) -> None:
        self._most_open_bytes = most_open_bytes
        self._open_bytes = 0
        self._silence_seconds = silence_seconds
        self._open: dict[str, _OpenLog] = {}
        self._still_read: WeakValueDictionary[str, _OpenLog] = WeakValueDictionary()
        self._ended = EndedEvents(retention_seconds, call_later, most_bytes)

    async def append(self, response_id: str, events: Sequence[LoggedEvent]) -> None:
        """Append events in order; events of a dropped log are ignored.

        Raises:
            Unavailable: there is no room.
        """
        if not events:
            return
        log = self._open.get(response_id)
        if log is None:
            if response_id in self._ended:
                raise Conflict(HAVE_ENDED)
            if events[0].sequence_number != 0:
                return
            log = self._open[response_id] = _OpenLog()
        if log.is_over:
            raise Conflict(HAVE_ENDED)
        self._take_room(log, bytes_in(events))
        log.append(events)

    def _take_room(self, log: "_OpenLog", count: int) -> None:
        """Count bytes of a log, which stays full once it had no room: its next event would not follow."""
        is_over = log.bytes + count > MOST_RESPONSE_BYTES or self._open_bytes + count > self._most_open_bytes
        log.is_full = log.is_full or is_over
        if log.is_full:
            raise Unavailable("There is no room left for the events of this response.")
        log.bytes += count
        self._open_bytes += count

    async def close(self, response_id: str) -> None:
        """Mark the log as complete; a repeated call has no effect."""
        log = self._open.get(response_id)
        if log is None or log.is_over:
            return
        log.end()
        packed = None
        try:
            packed = await _pack(log) if log.is_whole else None
        finally:
            # It may have been dropped meanwhile.
            if self._open.get(response_id) is log:
                del self._open[response_id]
                self._give_back(log)
                self._still_read[response_id] = log
                if packed is not None:
                    self._ended.add(response_id, packed)

    async def cut_off(self, response_id: str) -> bool:
        """Delete the events of an open log."""
        log = self._open.get(response_id)
        if log is None or log.is_over:
            return False
        await self.drop(response_id)
        return True

    async def read(self, response_id: str, after: int) -> AsyncGenerator[tuple[LoggedEvent, ...]]:
        """Yield the events above `after` that are kept, then those that are appended."""
        log = self._open.get(response_id)
        if log is None:
            if rest := await self._ended.since(response_id, after + 1):
                yield rest
            return
        place = 0
        while True:
            if log.events and log.events[-1].sequence_number > after:
                place = bisect_left(log.events, (after + 1,), place)
                batch = tuple(log.events[place:])
                after = batch[-1].sequence_number
                yield batch
            elif log.is_over:
                return
            elif not await log.wakeups.wait_within(self._silence_seconds):
                yield ()

    async def take_over(self, response_id: str, fence: int) -> AsyncGenerator[tuple[LoggedEvent, ...]]:
        """Yield the events of an open log; a process that shares this memory is the only writer."""
        if response_id in self._ended:
            raise Conflict(HAVE_ENDED)
        log = self._open.setdefault(response_id, _OpenLog())
        log.next_number = None
        if log.events:
            yield tuple(log.events)

    def leave(self, response_id: str) -> None:
        """Forget a log that has no events; one with events may have been taken over by what shares this memory."""
        log = self._open.get(response_id)
        if log is not None and not log.events:
            del self._open[response_id]
            log.end()

    async def exists(self, response_id: str) -> bool:
        """Whether events of this response are kept."""
        return response_id in self._open or response_id in self._ended

    async def drop(self, response_id: str) -> None:
        """Delete the events now; readers end."""
        self._ended.drop(response_id)
        for logs in (self._open, self._still_read):
            log = logs.pop(response_id, None)
            if log is not None:
                self._give_back(log)
                log.events.clear()
                log.end()

    def _give_back(self, log: "_OpenLog") -> None:
        self._open_bytes -= log.bytes
        log.bytes = 0


async def _pack(log: "_OpenLog") -> bytes:
    """Pack the events of a log, those of a long one beside the event loop."""
    if log.bytes > BYTES_PACKED_HERE:
        return await asyncio.to_thread(pack_events, tuple(log.events))
    return pack_events(log.events)


class _OpenLog:
    """The events of a response that is running or still being read; `next_number` is None where any may follow."""

    def __init__(self) -> None:
        self.next_number: int | None = None
        self.events: list[LoggedEvent] = []
        self.wakeups = Wakeups()
        self.is_over = False
        self.is_full = False
        self.bytes = 0

    def append(self, events: Sequence[LoggedEvent]) -> None:
        """Add events and wake the readers."""
        number = events[0].sequence_number if self.next_number is None else self.next_number
        for event in events:
            if event.sequence_number != number:
                raise InternalError("Events were appended out of turn.")
            number += 1
        self.next_number = number
        self.events.extend(events)
        self.wakeups.note()

    @property
    def is_whole(self) -> bool:
        """Whether no event is missing."""
        return bool(self.events) and self.events[-1].sequence_number == len(self.events) - 1

    def end(self) -> None:
        """Let readers end after the last event."""
        self.is_over = True
        self.wakeups.note()
