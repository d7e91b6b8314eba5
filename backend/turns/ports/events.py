"""The event log of running and just ended turns, and the signals that stop them."""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from backend.foundation.ports.readiness import Presence
from backend.turns.domain.response_events import LoggedEvent

__all__ = ["EventLog", "LoggedEvent", "StopSignals"]


class EventLog(Protocol):
    """Events of responses, numbered 0, 1, 2 … without gaps, kept until their retention ends."""

    async def append(self, response_id: str, events: Sequence[LoggedEvent]) -> None:
        """Append events in order; numbers go on where the last append ended."""
        ...

    async def close(self, response_id: str) -> None:
        """Say that the last event was appended; readers end behind it, retention begins."""
        ...

    def read(self, response_id: str, after: int) -> AsyncIterator[tuple[LoggedEvent, ...]]:
        """Yield events with a number above `after` (-1: from the start), several at once when ready.

        Waits for more until the log is closed. Ends at once, with nothing, when the log is unknown or its
        retention is over: ask `exists` first.
        """
        ...

    async def exists(self, response_id: str) -> bool:
        """Whether events of this response are kept."""
        ...

    async def drop(self, response_id: str) -> None:
        """Forget the events now; readers end."""
        ...


class StopSignals(Protocol):
    """Carries the wish to cancel from any replica to the one that runs the turn."""

    async def send(self, response_id: str) -> None:
        """Ask that the turn stops; no effect when nobody runs it."""
        ...

    async def wait(self, response_id: str) -> None:
        """Return when someone has asked; a wish from before the call counts."""
        ...


class EventStore(NamedTuple):
    """Where events and signals of turns go, and who watches it: nobody where it is the memory of this process."""

    events: EventLog
    signals: StopSignals
    presence: Presence | None
