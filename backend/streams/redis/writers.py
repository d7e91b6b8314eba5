"""The unwritten and the newest written events of the streams that this process writes, as plain state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from backend.foundation.services.wakeups import Wakeups
from backend.openai_api.domain.response_events import LoggedEvent, bytes_in
from backend.streams.ports.events import MOST_RESPONSE_BYTES
from backend.streams.redis.entries import END_ID, entry_id
from shared.errors import BallastError, Conflict, InternalError

_PENDING_BYTES = 512 * 1024
_RECENT_BYTES = 256 * 1024


class RecentEvents:
    """The newest events that Redis has, for readers in this process; a slower one reads the older ones from Redis."""

    def __init__(self) -> None:
        self._events: list[LoggedEvent] = []
        self._bytes = 0

    def add(self, events: Sequence[LoggedEvent]) -> None:
        """Add the events that follow, and forget the oldest ones beyond the limit."""
        self._events.extend(events)
        self._bytes += sum([len(event.body) for event in events])
        if self._bytes > 2 * _RECENT_BYTES:
            self._forget_oldest()

    def above(self, number: int) -> tuple[LoggedEvent, ...] | None:
        """Return the events above a number, None where the first of them is not kept."""
        if not self._events:
            return None
        first = number + 1 - self._events[0].sequence_number
        return tuple(self._events[first:]) if first >= 0 else None

    def _forget_oldest(self) -> None:
        count = 0
        while self._bytes > _RECENT_BYTES and count < len(self._events) - 1:
            self._bytes -= len(self._events[count].body)
            count += 1
        del self._events[:count]


@dataclass(eq=False)
class Writer:
    """The unwritten events of one stream, and the state of their writing.

    Readers in this process get events once Redis has them, so that they get what those elsewhere get. With
    `serves_alone` they get them at once: Redis refuses them, is silent, or has lost those before. Whether another
    process writes on, Redis alone knows: so that ends where `holds` says that one may.
    """

    response_id: str
    holds: Callable[[], bool] = lambda: True
    fence: int = 0
    next_number: int | None = None
    events: list[LoggedEvent] = field(default_factory=list[LoggedEvent])
    recent: RecentEvents = field(default_factory=RecentEvents)
    pending_bytes: int = 0
    offered_bytes: int = 0
    renewed_at: float = 0.0
    is_ending: bool = False
    has_ended: bool = False
    has_written: bool = False
    is_dropped: bool = False
    failure: BallastError | None = None
    is_alone: bool = False
    flushes: Wakeups = field(default_factory=Wakeups)

    def has_room_for(self, events: Sequence[LoggedEvent]) -> bool:
        """Count events that are to be added, and say whether all of them may be; after a no it stays no."""
        self.offered_bytes += bytes_in(events)
        return self.offered_bytes <= MOST_RESPONSE_BYTES

    def add(self, events: Sequence[LoggedEvent]) -> None:
        """Add events; their numbers must continue those of the last ones."""
        number = events[0].sequence_number if self.next_number is None else self.next_number
        for event in events:
            if self.is_ending or event.sequence_number != number:
                raise InternalError("Events were appended out of turn.")
            number += 1
            self.pending_bytes += len(event.body)
        self.next_number = number
        if self.serves_alone:
            self.show(events)
        self.events.extend(events)

    def show(self, events: Sequence[LoggedEvent]) -> None:
        """Let readers here have events."""
        self.recent.add(events)
        self.flushes.note()

    def serve_alone(self, sent: Sequence[LoggedEvent] = ()) -> None:
        """Let readers here have what Redis may lack: what was `sent`, what is unwritten, and all that comes."""
        if self.has_written and not self.is_alone and self.holds():
            self.is_alone = True
            self.show((*sent, *self.events))

    @property
    def serves_alone(self) -> bool:
        """Whether readers here get events though Redis may lack them; not where another process may write on."""
        return self.is_alone and self.holds() and not isinstance(self.failure, Conflict)

    def end(self) -> None:
        """Let readers here end behind the last event."""
        self.has_ended = True
        self.flushes.note()

    def fail(self, failure: BallastError) -> None:
        """Write no more; the first failure is kept."""
        self.failure = self.failure or failure
        self.flushes.note()

    @property
    def is_over(self) -> bool:
        """Whether no further events will come."""
        return self.has_ended or self.is_dropped or (self.failure is not None and not self.serves_alone)

    @property
    def must_write(self) -> bool:
        """Whether Redis lacks something of what was appended, or the end marker that was asked for."""
        return not self.is_over and (self.pending_bytes > 0 or self.is_ending)

    @property
    def must_wait(self) -> bool:
        """Whether the appender waits: for the first write, which makes the stream, or because too much is pending."""
        is_open = self.failure is None and not self.is_dropped
        return is_open and (self.pending_bytes > _PENDING_BYTES or (not self.has_written and self.pending_bytes > 0))


@dataclass(frozen=True, slots=True)
class Flush:
    """The events of one writer that are sent in a round trip; `ends` adds the end marker."""

    writer: Writer
    events: tuple[LoggedEvent, ...]
    ends: bool

    @property
    def last_id(self) -> str:
        """The id of the last entry that this flush writes."""
        return END_ID if self.ends else entry_id(self.events[-1].sequence_number, self.writer.fence)

    def settle(self) -> None:
        """Record in the writer that this flush was sent or has failed."""
        writer = self.writer
        writer.pending_bytes -= sum([len(event.body) for event in self.events])
        if self.events:
            writer.has_written = True
            if writer.failure is None and not (writer.is_dropped or writer.is_alone):
                writer.recent.add(self.events)
            writer.is_alone = writer.is_alone and (writer.failure is not None or writer.pending_bytes > 0)
        writer.has_ended = writer.has_ended or (self.ends and writer.failure is None)
        writer.flushes.note()
