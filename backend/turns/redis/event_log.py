"""The event log in Redis: one stream for each response, written in the background and readable from any replica."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from backend.turns.domain.response_events import LoggedEvent
from backend.turns.redis.client import AWAY, BLOCK_MILLISECONDS, RedisClient, answered, away, translated_redis_errors
from backend.turns.redis.entries import (
    END_FIELDS,
    END_ID,
    decode_fields,
    dropped_key,
    entries_of,
    entry_id,
    stream_key,
)
from backend.turns.redis.outbox import Lifetimes, Outbox, Writer
from shared.errors import Unavailable

_ENTRIES_PER_READ = 64
_PAUSE_SECONDS = 0.2
_ANSWER_SECONDS = 1.0

Entries = list[tuple[str, dict[bytes, bytes]]]


class RedisEventLog:
    """Keeps events in streams that expire: `retention_seconds` after their end, `open_seconds` after the last write.

    `append` returns before Redis has the events, except for the first ones of a response; a failed write is
    raised by the next `append` or by `close`. Redis may be away for `patience_seconds`; the first events of a
    response wait for `opening_seconds` only, because nobody has read anything of it yet.
    """

    def __init__(
        self,
        client: RedisClient,
        retention_seconds: float,
        *,
        open_seconds: float = 3600.0,
        patience_seconds: float = 10.0,
        opening_seconds: float = 2.0,
    ) -> None:
        self._client = client
        self._patience_seconds = patience_seconds
        self._opening_seconds = opening_seconds
        self._open_seconds = open_seconds
        self._outbox = Outbox(client, Lifetimes(retention_seconds, open_seconds, patience_seconds))

    async def append(self, response_id: str, events: Sequence[LoggedEvent]) -> None:
        """Append events in order; events of a dropped log are ignored.

        Raises:
            Unavailable: what was appended earlier could not be written. The log of this response has a hole.
        """
        if not events:
            return
        writer = self._outbox.writer(response_id)
        _raise_failure(writer)
        if writer.is_dropped:
            return
        writer.add(events)
        self._outbox.flush_soon(writer)
        if writer.must_wait:
            await self._wait_for_room(writer)
        _raise_failure(writer)

    async def close(self, response_id: str) -> None:
        """Write the end marker after all events; it is stored when this returns.

        Raises:
            Unavailable: it could not be written.
        """
        writer = self._outbox.writer(response_id)
        try:
            writer.is_ending = True
            self._outbox.flush_soon(writer)
            while not (writer.has_ended or writer.failure or writer.is_dropped):
                await writer.flushed.wait()
            _raise_failure(writer)
        finally:
            self._outbox.forget(response_id)

    async def read(self, response_id: str, after: int) -> AsyncGenerator[tuple[LoggedEvent, ...]]:
        """Yield the stored events with a number above `after`, then new ones as they come.

        Raises:
            Unavailable: Redis stays unavailable, or has lost the events.
        """
        if not await self.exists(response_id):
            return
        cursor = entry_id(after)
        while True:
            entries = await self._next_entries(response_id, cursor)
            if entries is None:
                return
            has_ended = bool(entries) and entries[-1][0] == END_ID
            events = [event for name, fields in entries if name != END_ID for event in decode_fields(fields, after)]
            if events:
                after = events[-1].sequence_number
                yield tuple(events)
            if has_ended:
                return
            cursor = entries[-1][0] if entries else cursor

    async def exists(self, response_id: str) -> bool:
        """Whether events of this response are kept."""
        with translated_redis_errors():
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await self._has(stream_key(response_id))

    async def drop(self, response_id: str) -> None:
        """Delete the events now, after an end marker by which readers end."""
        writer = self._outbox.forget(response_id)
        if writer is not None:
            writer.is_dropped = True
            writer.wake()
        key = stream_key(response_id)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.set(dropped_key(response_id), b"1", px=int(self._open_seconds * 1000))
        pipeline.xadd(key, {**END_FIELDS}, id=END_ID, nomkstream=True)
        pipeline.delete(key)
        with translated_redis_errors():
            # The end marker may be stored already, which makes XADD fail.
            await answered(pipeline.execute(raise_on_error=False))

    async def aclose(self) -> None:
        """Stop the writing task; the caller closes the client."""
        await self._outbox.close()

    async def _wait_for_room(self, writer: Writer) -> None:
        try:
            async with asyncio.timeout(None if writer.has_written else self._opening_seconds):
                while writer.must_wait:
                    await writer.flushed.wait()
        except TimeoutError:
            writer.fail(away())

    async def _next_entries(self, response_id: str, cursor: str) -> Entries | None:
        """Wait for entries after the cursor; empty when none came in time, None when the log was dropped."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self._patience_seconds
        while True:
            try:
                return await self._read_once(response_id, cursor)
            except AWAY as error:
                if loop.time() >= give_up_at:
                    raise away() from error
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _read_once(self, response_id: str, cursor: str) -> Entries | None:
        key = stream_key(response_id)
        reply = self._client.xread({key: cursor}, count=_ENTRIES_PER_READ, block=BLOCK_MILLISECONDS)
        entries = entries_of(await answered(reply))
        if entries or await self._has(key):
            return entries
        if await self._has(dropped_key(response_id)):
            return None
        raise Unavailable("The events of this response were lost.")

    async def _has(self, key: str) -> bool:
        return bool(await answered(self._client.exists(key)))


def _raise_failure(writer: Writer) -> None:
    if writer.failure is not None:
        # The same error may be raised often; its traceback must not grow each time.
        raise writer.failure.with_traceback(None)
