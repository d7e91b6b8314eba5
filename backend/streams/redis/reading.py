"""Reading one stream of events: from the memory of its writer where that is in this process, else from Redis."""

import asyncio

from backend.foundation.redis.client import BLOCK_MILLISECONDS, await_answer, away
from backend.foundation.redis.commands import RedisClient
from backend.openai_api.domain.response_events import LoggedEvent
from backend.streams.redis.entries import END_ID, decode_entries, entries_of, entry_id, name_dropped_key, stream_key
from backend.streams.redis.writers import Writer
from shared.errors import Conflict, EventsLost, Unavailable

SILENCE_SECONDS = BLOCK_MILLISECONDS / 1000
ENTRIES_PER_READ = 64
_PAUSE_SECONDS = 0.5
_ANSWER_SECONDS = SILENCE_SECONDS + 2.0
"""How late a waiting command may be answered; the client's own timeout would be followed by its repetitions."""

Events = tuple[LoggedEvent, ...]


class Patience:
    """How long a reader bears that Redis does not answer."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._clock = asyncio.get_running_loop().time
        self._answered_at = self._clock()

    def note_answer(self) -> None:
        """Begin anew."""
        self._answered_at = self._clock()

    def note_silence(self) -> None:
        """Check that Redis has not been silent for too long.

        Raises:
            Unavailable: it has.
        """
        if self._clock() - self._answered_at >= self._seconds:
            raise away()


class StreamReader:
    """Reads the events of a response above a number.

    `has_answer` says whether none came although Redis answers: not where it is away, or this process has some to write.
    Events of a turn of this process come from the memory of its writer, which has them once Redis has them; what is
    no longer there, and all events of other processes, are read from Redis.
    """

    def __init__(
        self, client: RedisClient, response_id: str, after: int, own: Writer | None, patience: Patience
    ) -> None:
        self._client = client
        self._response_id = response_id
        self._after = after
        self._cursor = entry_id(after)
        self._own = own
        self._patience = patience
        self._has_ended = False
        self.has_answer = True

    async def next_events(self) -> Events | None:
        """Return the next events, none where none came within `SILENCE_SECONDS`; None at the end of the stream.

        Raises:
            Unavailable: Redis stays unavailable, or has lost the events.
        """
        if self._has_ended:
            return None
        events = await self._next_stored() if self._own is None else await self._next_own(self._own)
        if events:
            self._after = events[-1].sequence_number
        return events

    async def _next_own(self, writer: Writer) -> Events | None:
        events = writer.recent.above(self._after)
        if events == () and not writer.is_over:
            await writer.flushes.wait_within(SILENCE_SECONDS)
            events = writer.recent.above(self._after)
        if events is None or (not events and isinstance(writer.failure, Conflict)):
            self._own = None
            self._cursor = entry_id(self._after)
            return ()
        if events or not writer.is_over:
            self.has_answer = not writer.must_write
            return events
        if writer.failure is not None:
            raise writer.failure.with_traceback(None)
        return None

    async def _next_stored(self) -> Events | None:
        key = stream_key(self._response_id)
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                entries = await self._read(key)
                is_kept = bool(entries) or await self._has(key)
                was_dropped = not is_kept and await self._has(name_dropped_key(self._response_id))
        except (Unavailable, TimeoutError):
            self._patience.note_silence()
            await asyncio.sleep(_PAUSE_SECONDS)
            self.has_answer = False
            return ()
        self._patience.note_answer()
        self.has_answer = True
        if was_dropped:
            return None
        if not is_kept:
            raise EventsLost("The events of this response were lost.")
        # An entry of a process that has taken the turn over stands far behind the number of its newest event.
        self._cursor = entries[-1][0] if entries else self._cursor
        self._has_ended = bool(entries) and entries[-1][0] == END_ID
        return tuple(decode_entries(entries, self._after)) or (None if self._has_ended else ())

    async def _read(self, key: str) -> list[tuple[str, dict[bytes, bytes]]]:
        reply = self._client.xread({key: self._cursor}, count=ENTRIES_PER_READ, block=BLOCK_MILLISECONDS)
        return entries_of(await await_answer(reply))

    async def _has(self, key: str) -> bool:
        return bool(await await_answer(self._client.exists(key)))
