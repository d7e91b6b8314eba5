"""What a process still has to write of one event stream, as plain state."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from backend.turns.ports.events import LoggedEvent
from backend.turns.redis.entries import END_ID, entry_id
from shared.errors import BallastError, InternalError

_PENDING_BYTES = 512 * 1024


@dataclass
class Writer:
    """What this process still has to write of one stream, and whether it can."""

    response_id: str
    next_number: int | None = None
    events: list[LoggedEvent] = field(default_factory=list[LoggedEvent])
    pending_bytes: int = 0
    is_ending: bool = False
    has_ended: bool = False
    has_written: bool = False
    is_dropped: bool = False
    failure: BallastError | None = None
    flushed: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, events: Sequence[LoggedEvent]) -> None:
        """Take events; their numbers must go on where the last ones ended."""
        first = events[0].sequence_number if self.next_number is None else self.next_number
        if self.is_ending or [event.sequence_number for event in events] != list(range(first, first + len(events))):
            raise InternalError("Events were appended out of turn.")
        self.next_number = first + len(events)
        self.events.extend(events)
        self.pending_bytes += sum(len(event.body) for event in events)

    def fail(self, failure: BallastError) -> None:
        """Refuse everything from now on; the first failure is the one that is told."""
        self.failure = self.failure or failure
        self.wake()

    def wake(self) -> None:
        """Wake who waits for a flush."""
        self.flushed.set()
        self.flushed = asyncio.Event()

    @property
    def must_wait(self) -> bool:
        """Whether the appender waits: for the first write, which makes the stream, or because too much is pending."""
        is_open = self.failure is None and not self.is_dropped
        return is_open and (self.pending_bytes > _PENDING_BYTES or (not self.has_written and self.pending_bytes > 0))


@dataclass(frozen=True)
class Flush:
    """One writer's share of a round trip."""

    writer: Writer
    events: tuple[LoggedEvent, ...]
    ends: bool

    @property
    def last_id(self) -> str:
        """The id of the last entry that it writes."""
        return END_ID if self.ends else entry_id(self.events[-1].sequence_number)

    def settle(self) -> None:
        """Let the writer know that it was sent, or cannot be."""
        self.writer.pending_bytes -= sum(len(event.body) for event in self.events)
        self.writer.has_written = self.writer.has_written or bool(self.events)
        self.writer.has_ended = self.writer.has_ended or self.ends
        self.writer.wake()
