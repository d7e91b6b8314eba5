"""The event log in Redis: one stream for each response, written in the background and readable from any replica."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from backend.foundation.redis.client import await_answer, away
from backend.foundation.redis.commands import RedisClient
from backend.foundation.services.supervision import Supervisor, stop_task
from backend.openai_api.domain.response_events import LoggedEvent
from backend.streams.ports.events import Tenure
from backend.streams.redis.entries import (
    END_ID,
    SEAL_FIELDS,
    decode_entries,
    entries_of,
    entry_id,
    is_behind,
    name_dropped_key,
    seal_id,
    stream_key,
)
from backend.streams.redis.outbox import REPEATED, Lifetimes, Outbox, build_taken_error
from backend.streams.redis.reading import ENTRIES_PER_READ, Patience, StreamReader
from backend.streams.redis.writers import Writer
from shared.errors import Conflict, Unavailable

_OPEN_SECONDS = 3600.0
_DELETE_SECONDS = 5.0
_ANSWER_SECONDS = 1.0
_PAUSE_SECONDS = 0.2


class RedisEventLog:
    """Keeps events in streams that expire: `retention_seconds` after their end, an hour after the last write.

    `append` returns before Redis has the events, except for the first ones of a response; a failed write is
    raised by the next `append` or by `close`. Redis may be away for `patience_seconds`; the first events of a
    response wait for `opening_seconds` only, because nobody has read anything of it yet.
    """

    def __init__(
        self,
        client: RedisClient,
        supervisor: Supervisor,
        retention_seconds: float,
        *,
        tenure: Tenure = lambda: lambda: True,
        patience_seconds: float = 10.0,
        opening_seconds: float = 2.0,
    ) -> None:
        self._client = client
        self._supervisor = supervisor
        self._patience_seconds = patience_seconds
        self._opening_seconds = opening_seconds
        self._lifetimes = Lifetimes(retention_seconds, _OPEN_SECONDS, patience_seconds)
        self._outbox = Outbox(client, supervisor, self._lifetimes, tenure)
        self._not_deleted: set[str] = set()
        self._deleting: asyncio.Task[None] | None = None

    @property
    def writer_count(self) -> int:
        """How many responses have their events written by this process."""
        return self._outbox.writer_count

    async def append(self, response_id: str, events: Sequence[LoggedEvent]) -> None:
        """Append events in order; events of a dropped log are ignored.

        Where Redis does not take them, readers in this process get them all the same.

        Raises:
            TurnTaken: another process writes the events of this response.
            Unavailable: what was appended earlier could not be written, and the log of this response has a hole; or it
                has no room for these events.
        """
        if not events:
            return
        writer = self._outbox.writer(response_id)
        if writer.is_dropped:
            return
        if not writer.has_room_for(events):
            raise Unavailable("There is no room left for the events of this response.")
        if writer.is_alone and not writer.serves_alone:
            writer.fail(away())
        if writer.failure is not None and writer.serves_alone:
            writer.show(events)
        _raise_failure(writer)
        writer.add(events)
        self._outbox.flush_soon(writer)
        if writer.must_wait:
            await self._wait_for_room(writer)
        _raise_failure(writer)

    async def close(self, response_id: str) -> None:
        """Write the end marker after all events; it is stored when this returns.

        Raises:
            Unavailable: it could not be written. What there is of the events is deleted when Redis is back.
        """
        writer = self._outbox.writer(response_id)
        try:
            writer.is_ending = True
            self._outbox.flush_soon(writer)
            while not (writer.has_ended or writer.failure or writer.is_dropped):
                await writer.flushes.wait()
            _raise_failure(writer)
        except Unavailable:
            self._delete_later(response_id)
            raise
        finally:
            writer.end()
            self._outbox.forget(response_id)

    async def cut_off(self, response_id: str) -> bool:
        """Delete the stream, unless it has its end marker: writers, whose commands may be on their way, make none anew.

        Raises:
            Unavailable: Redis is away.
        """
        pipeline = self._client.pipeline(transaction=False)
        self._lifetimes.queue_end(pipeline, stream_key(response_id))
        marked, _ = await await_answer(pipeline.execute(raise_on_error=False))
        is_closed = isinstance(marked, Exception) and REPEATED in str(marked)
        if isinstance(marked, Exception) and not is_closed:
            raise away() from marked
        if not is_closed:
            await self._delete(response_id)
        self.leave(response_id)
        return not is_closed

    async def read(self, response_id: str, after: int) -> AsyncGenerator[tuple[LoggedEvent, ...]]:
        """Yield the stored events with a number above `after`, then new ones as they come; see `StreamReader`.

        Raises:
            Unavailable: Redis stays unavailable, or has lost the events.
        """
        patience = Patience(self._patience_seconds)
        if not await self._exists_at_last(response_id, patience):
            return
        own = self._outbox.find(response_id)
        reader = StreamReader(self._client, response_id, after, own, patience)
        while (found := await reader.next_events()) is not None:
            if found or reader.has_answer:
                yield found

    async def take_over(self, response_id: str, fence: int) -> AsyncGenerator[tuple[LoggedEvent, ...]]:
        """Seal the stream against earlier writers, and yield what is before the seal; the seal makes a missing stream.

        Raises:
            Conflict: the end marker is written.
            TurnTaken: a writer with a higher fencing number has been here.
            Unavailable: Redis is away.
        """
        key, seal = stream_key(response_id), seal_id(fence)
        await self._seal(key, seal)
        self.leave(response_id)
        writer = self._outbox.writer(response_id)
        writer.fence, writer.has_written = fence, True
        cursor, after = entry_id(-1), -1
        while is_behind(seal, cursor):
            entries = entries_of(await await_answer(self._client.xread({key: cursor}, count=ENTRIES_PER_READ)))
            events = tuple(decode_entries(entries, after))
            if events:
                after = events[-1].sequence_number
                yield events
            cursor = entries[-1][0] if entries else seal

    async def _seal(self, key: str, seal: str) -> None:
        """Write the seal, which may be there already."""
        pipeline = self._client.pipeline(transaction=False)
        pipeline.xadd(key, {**SEAL_FIELDS}, id=seal)
        self._lifetimes.queue_renewal(pipeline, key)
        sealed, _ = await await_answer(pipeline.execute(raise_on_error=False))
        if not isinstance(sealed, Exception):
            return
        if REPEATED not in str(sealed):
            raise away() from sealed
        newest = await await_answer(self._client.xrevrange(key, count=1))
        name = newest[0][0].decode() if newest else seal
        if name == END_ID:
            raise Conflict("The end of the events of this response is written.")
        if is_behind(name, seal):
            raise build_taken_error()

    def leave(self, response_id: str) -> None:
        """Write no more of a response that another process has taken over: readers here get what that one writes."""
        writer = self._outbox.forget(response_id)
        if writer is not None:
            writer.failure = build_taken_error()
            writer.flushes.note()

    async def exists(self, response_id: str) -> bool:
        """Whether events of this response are kept."""
        writer = self._outbox.find(response_id)
        if writer is not None and writer.has_written and (writer.failure is None or writer.serves_alone):
            return not writer.is_dropped
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await self._has(stream_key(response_id))
        except TimeoutError as error:
            raise away() from error

    async def _exists_at_last(self, response_id: str, patience: Patience) -> bool:
        while True:
            try:
                return await self.exists(response_id)
            except Unavailable:
                patience.note_silence()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def drop(self, response_id: str) -> None:
        """Delete the events now, after an end marker by which readers end.

        Raises:
            Unavailable: Redis is away. They are deleted when it is back.
        """
        writer = self._outbox.forget(response_id)
        if writer is not None:
            writer.is_dropped = True
            writer.flushes.note()
        try:
            await self._delete(response_id)
        except Unavailable:
            self._delete_later(response_id)
            raise

    def _delete_later(self, response_id: str) -> None:
        self._not_deleted.add(response_id)
        if self._deleting is None:
            self._deleting = self._supervisor.start("drop_events", self.delete_late, _DELETE_SECONDS)

    async def aclose(self) -> None:
        """Stop the background tasks; the caller closes the client."""
        await stop_task(self._deleting)
        await self._outbox.close()

    async def _delete(self, response_id: str) -> None:
        key = stream_key(response_id)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.set(name_dropped_key(response_id), b"1", px=self._lifetimes.open_milliseconds)
        self._lifetimes.queue_end(pipeline, key)
        pipeline.delete(key)
        # The end marker may be stored already, which makes XADD fail.
        *_, deleted = await await_answer(pipeline.execute(raise_on_error=False))
        if isinstance(deleted, Exception):
            raise away() from deleted

    async def delete_late(self) -> None:
        """Delete the events that an outage kept from being deleted."""
        for response_id in sorted(self._not_deleted):
            await self._delete(response_id)
            self._not_deleted.discard(response_id)

    async def _wait_for_room(self, writer: Writer) -> None:
        try:
            async with asyncio.timeout(None if writer.has_written else self._opening_seconds):
                while writer.must_wait:
                    await writer.flushes.wait()
        except TimeoutError:
            writer.fail(away())

    async def _has(self, key: str) -> bool:
        return bool(await await_answer(self._client.exists(key)))


def _raise_failure(writer: Writer) -> None:
    if writer.failure is not None:
        # The same error may be raised often; its traceback must not grow each time.
        raise writer.failure.with_traceback(None)
