"""The event log in memory."""

import asyncio
import sys
import zlib
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from backend.ports.events import LoggedEvent
from shared.errors import InternalError

CallLater = Callable[[float, Callable[[], None]], Any]
"""Calls a function after so many seconds; returns something with `cancel()`."""

_SEPARATOR = b"\n"
"""Never inside an event: JSON text escapes line ends."""

_FASTEST = 1


class MemoryEventLog:
    """Keeps events in lists; `retention_seconds` after its close a log frees its memory.

    `call_later` is the timer; without one it is that of the running event loop.
    """

    def __init__(self, retention_seconds: float, call_later: CallLater | None = None) -> None:
        self._retention_seconds = retention_seconds
        self._call_later = call_later
        self._logs: dict[str, _Log] = {}

    async def append(self, response_id: str, events: Sequence[LoggedEvent]) -> None:
        """Append events in order; those of a log that was dropped vanish."""
        if not events:
            return
        log = self._logs.get(response_id)
        if log is None:
            if events[0].sequence_number != 0:
                return
            log = self._logs[response_id] = _Log()
        log.append(events)

    async def close(self, response_id: str) -> None:
        """Say that the last event was appended; once is enough."""
        log = self._logs.get(response_id)
        if log is None or log.is_over:
            return
        log.close()
        later = self._call_later or asyncio.get_running_loop().call_later
        log.expiry = later(self._retention_seconds, lambda: self._forget(response_id))

    async def read(self, response_id: str, after: int) -> AsyncGenerator[tuple[LoggedEvent, ...]]:
        """Yield what is there above `after`, then what comes."""
        log = self._logs.get(response_id)
        place = after + 1
        while log is not None:
            batch = log.from_place(place)
            if batch:
                place += len(batch)
                yield batch
            elif log.is_over:
                return
            else:
                await log.changed.wait()

    async def exists(self, response_id: str) -> bool:
        """Whether events of this response are kept."""
        return response_id in self._logs

    async def drop(self, response_id: str) -> None:
        """Forget the events now; readers end."""
        self._forget(response_id)

    def _forget(self, response_id: str) -> None:
        log = self._logs.pop(response_id, None)
        if log is not None:
            log.drop()


class _Log:
    """The events of one response, as values while it runs and packed afterwards.

    Events of one answer differ in little but their text: packed they take a twentieth of the memory, for as
    long as they are kept.
    """

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.expiry: Any = None
        self.is_over = False
        self._events: list[LoggedEvent] = []
        self._kinds: tuple[str, ...] = ()
        self._packed = b""

    def append(self, events: Sequence[LoggedEvent]) -> None:
        """Add events and wake the readers."""
        expected = len(self._events)
        if self.is_over or [event.sequence_number for event in events] != list(range(expected, expected + len(events))):
            raise InternalError("Events were appended out of turn.")
        self._events.extend(events)
        self._wake()

    def close(self) -> None:
        """Let readers end behind the last event."""
        self._kinds = tuple(sys.intern(event.type) for event in self._events)
        self._packed = zlib.compress(_SEPARATOR.join(event.body for event in self._events), _FASTEST)
        self._events.clear()
        self.is_over = True
        self._wake()

    def drop(self) -> None:
        """Let readers end now."""
        if self.expiry is not None:
            self.expiry.cancel()
        self._events.clear()
        self._kinds, self._packed = (), b""
        self.is_over = True
        self._wake()

    def from_place(self, place: int) -> tuple[LoggedEvent, ...]:
        """Return the events from that number on."""
        if not self.is_over:
            return tuple(self._events[place:])
        if place >= len(self._kinds):
            return ()
        bodies = zlib.decompress(self._packed).split(_SEPARATOR)
        numbered = enumerate(zip(self._kinds[place:], bodies[place:], strict=True), start=place)
        return tuple(LoggedEvent(sequence_number=number, type=kind, body=body) for number, (kind, body) in numbered)

    def _wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()
