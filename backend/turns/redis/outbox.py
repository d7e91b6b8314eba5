"""Background writing of event streams: `append` does not wait, one task writes for all turns of the process."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from redis.exceptions import RedisError, ResponseError

from backend.turns.redis.client import AWAY, RedisClient, RedisPipeline, answered, away, translated_redis_errors
from backend.turns.redis.entries import END_FIELDS, END_ID, dropped_key, encode_fields, entry_id, stream_key
from backend.turns.redis.writers import Flush, Writer
from shared.errors import Conflict, Unavailable

_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_REPEATED = "equal or smaller"


@dataclass(frozen=True)
class Lifetimes:
    """How long a stream is kept after its last write (`open`) or its end (`retention`), and a write is retried."""

    retention_seconds: float
    open_seconds: float
    patience_seconds: float


class Outbox:
    """Owns the writers and the task that writes their events; `close` ends the task."""

    def __init__(self, client: RedisClient, lifetimes: Lifetimes) -> None:
        self._client = client
        self._lifetimes = lifetimes
        self._writers: dict[str, Writer] = {}
        self._dirty: dict[str, Writer] = {}
        self._has_work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def writer(self, response_id: str) -> Writer:
        """Return the writer of a stream, a new one when this process has none."""
        return self._writers.setdefault(response_id, Writer(response_id))

    def forget(self, response_id: str) -> Writer | None:
        """Remove the writer of a stream and return it."""
        self._dirty.pop(response_id, None)
        return self._writers.pop(response_id, None)

    def flush_soon(self, writer: Writer) -> None:
        """Schedule the writing of a writer's events."""
        if self._is_closed:
            writer.fail(away())
            return
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="event outbox")
            self._task.add_done_callback(self._fail_all)
        self._dirty[writer.response_id] = writer
        self._has_work.set()

    async def close(self) -> None:
        """Stop writing; events that are still pending are lost, so end the turns first."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            flushes = [self._take(writer) for writer in self._dirty.values()]
            self._dirty.clear()
            await self._write(flushes)

    def _fail_all(self, _task: asyncio.Task[None]) -> None:
        """Fail all writers when the task has ended, so that no appender waits for it."""
        self._is_closed = True
        for writer in self._writers.values():
            writer.fail(away())

    def _take(self, writer: Writer) -> Flush:
        events = tuple(writer.events)
        writer.events.clear()
        return Flush(writer, events, writer.is_ending)

    async def _write(self, flushes: Sequence[Flush]) -> None:
        try:
            for flush, answer in await self._send_with_retries(flushes):
                await self._apply_answer(flush, answer)
        except (Unavailable, RedisError) as error:
            failure = error if isinstance(error, Unavailable) else away()
            for flush in flushes:
                flush.writer.fail(failure)
        for flush in flushes:
            flush.settle()

    async def _send_with_retries(self, flushes: Sequence[Flush]) -> Sequence[tuple[Flush, object]]:
        """Send until Redis answers; commands may be repeated. Responses whose writing has failed are left out."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self._lifetimes.patience_seconds
        pause_seconds = _FIRST_PAUSE_SECONDS
        while True:
            still_open = [flush for flush in flushes if flush.writer.failure is None]
            try:
                return list(zip(still_open, await self._send(still_open), strict=True))
            except AWAY as error:
                if loop.time() >= give_up_at:
                    raise away() from error
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)

    async def _send(self, flushes: Sequence[Flush]) -> Sequence[object]:
        """Send all flushes in one round trip; return the worst answer of each."""
        pipeline = self._client.pipeline(transaction=False)
        counts = [self._queue(pipeline, flush) for flush in flushes]
        answers = await answered(pipeline.execute(raise_on_error=False))
        worst: list[object] = []
        for count in counts:
            own, answers = answers[:count], answers[count:]
            worst.append(min(own, key=_rank))
        return worst

    def _queue(self, pipeline: RedisPipeline, flush: Flush) -> int:
        key = stream_key(flush.writer.response_id)
        before = len(pipeline)
        if flush.events:
            is_new = flush.events[0].sequence_number == 0
            name = entry_id(flush.events[-1].sequence_number)
            pipeline.xadd(key, encode_fields(flush.events), id=name, nomkstream=not is_new)
        seconds = self._lifetimes.open_seconds
        if flush.ends:
            pipeline.xadd(key, END_FIELDS, id=END_ID, nomkstream=True)
            seconds = self._lifetimes.retention_seconds
        pipeline.pexpire(key, max(1, int(seconds * 1000)))
        return len(pipeline) - before

    async def _apply_answer(self, flush: Flush, answer: object) -> None:
        """Accept repeated writes and dropped streams; record a lost stream or a second writer as the failure."""
        writer = flush.writer
        if writer.failure is not None:
            await self._delete_stream(writer.response_id)
        elif isinstance(answer, ResponseError) and _REPEATED in str(answer):
            if await self._newest_id(writer.response_id) != flush.last_id:
                writer.failure = Conflict("Somebody else has written the events of this response.")
        elif isinstance(answer, Exception):
            writer.failure = away()
        elif answer is None:
            writer.is_dropped = not writer.has_written or await self._was_dropped(writer.response_id)
            if not writer.is_dropped:
                writer.failure = Unavailable("The events of this response were lost.")

    async def _newest_id(self, response_id: str) -> str | None:
        with translated_redis_errors():
            newest = await answered(self._client.xrevrange(stream_key(response_id), count=1))
        return newest[0][0].decode() if newest else None

    async def _delete_stream(self, response_id: str) -> None:
        """Delete the stream of a response whose writing has failed: its end marker will never be written."""
        with translated_redis_errors():
            await answered(self._client.delete(stream_key(response_id)))

    async def _was_dropped(self, response_id: str) -> bool:
        with translated_redis_errors():
            return bool(await answered(self._client.exists(dropped_key(response_id))))


def _rank(answer: object) -> int:
    """Order answers: a missing stream is the worst, then errors, then success."""
    if answer is None:
        return 0
    if isinstance(answer, Exception):
        return 2 if _REPEATED in str(answer) else 1
    return 3
