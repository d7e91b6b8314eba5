"""The unwritten events of the streams that this process writes, as plain state."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from backend.turns.domain.response_events import LoggedEvent
from backend.turns.redis.entries import END_ID, entry_id
from shared.errors import BallastError, InternalError

_PENDING_BYTES = 512 * 1024


@dataclass
class Writer:
    """The unwritten events of one stream, and the state of their writing."""

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
        """Add events; their numbers must continue those of the last ones."""
        first = events[0].sequence_number if self.next_number is None else self.next_number
        if self.is_ending or [event.sequence_number for event in events] != list(range(first, first + len(events))):
            raise InternalError("Events were appended out of turn.")
        self.next_number = first + len(events)
        self.events.extend(events)
        self.pending_bytes += sum(len(event.body) for event in events)

    def fail(self, failure: BallastError) -> None:
        """Refuse all further events; the first failure is kept."""
        self.failure = self.failure or failure
        self.wake()

    def wake(self) -> None:
        """Wake the tasks that wait for a flush."""
        self.flushed.set()
        self.flushed = asyncio.Event()

    @property
    def must_wait(self) -> bool:
        """Whether the appender waits: for the first write, which makes the stream, or because too much is pending."""
        is_open = self.failure is None and not self.is_dropped
        return is_open and (self.pending_bytes > _PENDING_BYTES or (not self.has_written and self.pending_bytes > 0))


@dataclass(frozen=True)
class Flush:
    """The events of one writer that are sent in a round trip; `ends` adds the end marker."""

    writer: Writer
    events: tuple[LoggedEvent, ...]
    ends: bool

    @property
    def last_id(self) -> str:
        """The id of the last entry that this flush writes."""
        return END_ID if self.ends else entry_id(self.events[-1].sequence_number)

    def settle(self) -> None:
        """Record in the writer that this flush was sent or has failed."""
        self.writer.pending_bytes -= sum(len(event.body) for event in self.events)
        self.writer.has_written = self.writer.has_written or bool(self.events)
        self.writer.has_ended = self.writer.has_ended or self.ends
        self.writer.wake()
