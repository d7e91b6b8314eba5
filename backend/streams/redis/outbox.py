"""Background writing of event streams: `append` does not wait, one task writes for all turns of the process."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from redis.exceptions import ResponseError

from backend.foundation.redis.client import await_answer, away, is_ours
from backend.foundation.redis.commands import RedisClient, RedisPipeline
from backend.foundation.services.supervision import Supervisor, stop_task
from backend.streams.ports.events import Tenure
from backend.streams.redis.entries import END_FIELDS, END_ID, encode_fields, entry_id, name_dropped_key, stream_key
from backend.streams.redis.writers import Flush, Writer
from shared.errors import BallastError, Conflict, EventsLost, TurnTaken, Unavailable

_ATTEMPT_SECONDS = 2.0
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_EXPIRY_RENEWALS = 10
REPEATED = "equal or smaller"

# In one step, so that an entry that another process writes meanwhile stays.
DELETE_WHERE_LAST = """
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
return newest[1] and newest[1][1] == ARGV[1] and redis.call('DEL', KEYS[1]) or 0
"""


@dataclass(frozen=True)
class Lifetimes:
    """How long a stream is kept after its last write (`open`) or its end (`retention`), and a write is retried.

    A stream that is written renews its life now and then: it may end a tenth of `open` earlier.
    """

    retention_seconds: float
    open_seconds: float
    patience_seconds: float

    @property
    def open_milliseconds(self) -> int:
        """How long a stream is kept after its last write."""
        return max(1, int(self.open_seconds * 1000))

    def queue_end(self, pipeline: RedisPipeline, key: str) -> None:
        """Add the commands that end a stream: its end marker, and how long it is kept from then on."""
        pipeline.xadd(key, {**END_FIELDS}, id=END_ID, nomkstream=True)
        pipeline.pexpire(key, max(1, int(self.retention_seconds * 1000)))

    def queue_renewal(self, pipeline: RedisPipeline, key: str) -> None:
        """Add the command that renews the life of an open stream."""
        pipeline.pexpire(key, self.open_milliseconds)


class Outbox:
    """Owns the writers and the task that writes their events; `close` ends the task."""

    def __init__(self, client: RedisClient, supervisor: Supervisor, lifetimes: Lifetimes, tenure: Tenure) -> None:
        self._client = client
        self._tenure = tenure
        self._supervisor = supervisor
        self._lifetimes = lifetimes
        self._delete_where_last = client.register_script(DELETE_WHERE_LAST)
        self._writers: dict[str, Writer] = {}
        self._dirty: dict[str, Writer] = {}
        self._has_work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def find(self, response_id: str) -> Writer | None:
        """Return the writer of a stream, if this process has one."""
        return self._writers.get(response_id)

    @property
    def writer_count(self) -> int:
        """How many streams this process writes."""
        return len(self._writers)

    def writer(self, response_id: str) -> Writer:
        """Return the writer of a stream, a new one when this process has none."""
        found = self._writers.get(response_id)
        if found is None:
            found = self._writers[response_id] = Writer(response_id, self._tenure())
        return found

    def forget(self, response_id: str) -> Writer | None:
        """Remove the writer of a stream and return it."""
        self._dirty.pop(response_id, None)
        return self._writers.pop(response_id, None)

    def flush_soon(self, writer: Writer) -> None:
        """Schedule the writing of a writer's events, with those of others that come before or while a write runs."""
        if self._is_closed:
            writer.fail(away())
            return
        if self._task is None:
            self._task = self._supervisor.start("event_outbox", self._write_forever)
        self._dirty[writer.response_id] = writer
        self._has_work.set()

    async def close(self) -> None:
        """Stop writing; events that are still pending are lost, so end the turns first."""
        self._is_closed = True
        await stop_task(self._task)
        for writer in self._writers.values():
            writer.fail(away())

    async def _write_forever(self) -> None:
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            flushes = [self._take(writer) for writer in self._dirty.values()]
            self._dirty.clear()
            await self._write(flushes)

    def _take(self, writer: Writer) -> Flush:
        events = tuple(writer.events)
        writer.events.clear()
        return Flush(writer, events, writer.is_ending)

    async def _write(self, flushes: Sequence[Flush]) -> None:
        """Write and settle; where this breaks off, for whatever reason, nobody waits for events that were taken."""
        failure: Unavailable | None = away()
        try:
            for flush, answer in await self._send_with_retries(flushes):
                await self._apply_answer(flush, answer)
            failure = None
        except Unavailable as error:
            failure = error
        finally:
            for flush in flushes:
                if failure is not None:
                    flush.writer.serve_alone(flush.events)
                    flush.writer.fail(failure)
                flush.settle()

    async def _send_with_retries(self, flushes: Sequence[Flush]) -> Sequence[tuple[Flush, object]]:
        """Send until Redis answers; commands may be repeated. Responses whose writing has failed are left out.

        A process that stood still for longer than its patience asks once more: Redis may have been there all the time.
        """
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self._lifetimes.patience_seconds
        pause_seconds = _FIRST_PAUSE_SECONDS
        while True:
            still_open = [flush for flush in flushes if flush.writer.failure is None]
            spare_seconds = give_up_at - loop.time() - _ATTEMPT_SECONDS
            try:
                async with asyncio.timeout(max(spare_seconds, _ATTEMPT_SECONDS)):
                    return list(zip(still_open, await self._send(still_open), strict=True))
            except (Unavailable, TimeoutError) as error:
                for flush in still_open:
                    flush.writer.serve_alone(flush.events)
                for writer in self._writers.values():
                    writer.serve_alone()
                if spare_seconds <= 0:
                    raise away() from error
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)

    async def _send(self, flushes: Sequence[Flush]) -> Sequence[object]:
        """Send all flushes in one round trip; return the worst answer of each."""
        if not flushes:
            return ()
        pipeline = self._client.pipeline(transaction=False)
        counts = [self._queue(pipeline, flush) for flush in flushes]
        answers = await await_answer(pipeline.execute(raise_on_error=False))
        refusal = next((answer for answer in answers if isinstance(answer, Exception) and not is_ours(answer)), None)
        if refusal is not None:
            raise away() from refusal
        worst: list[object] = []
        place = 0
        for count in counts:
            worst.append(min(answers[place : place + count], key=_rank))
            place += count
        return worst

    def _queue(self, pipeline: RedisPipeline, flush: Flush) -> int:
        key = stream_key(flush.writer.response_id)
        before = len(pipeline)
        if flush.events:
            is_new = flush.events[0].sequence_number == 0
            name = entry_id(flush.events[-1].sequence_number, flush.writer.fence)
            pipeline.xadd(key, encode_fields(flush.events), id=name, nomkstream=not is_new)
        if flush.ends:
            self._lifetimes.queue_end(pipeline, key)
        elif self._must_renew(flush.writer):
            self._lifetimes.queue_renewal(pipeline, key)
        return len(pipeline) - before

    def _must_renew(self, writer: Writer) -> bool:
        """Whether the stream's life is to be renewed; a first write is repeated as a whole until it has succeeded."""
        now = asyncio.get_running_loop().time()
        if writer.has_written and now - writer.renewed_at < self._lifetimes.open_seconds / _EXPIRY_RENEWALS:
            return False
        writer.renewed_at = now
        return True

    async def _apply_answer(self, flush: Flush, answer: object) -> None:
        """Accept repeated writes and dropped streams; record a lost stream or a second writer as the failure."""
        writer = flush.writer
        if writer.failure is not None:
            await self._delete_own(flush, writer.failure)
        elif isinstance(answer, ResponseError) and REPEATED in str(answer):
            if await self._newest_id(writer.response_id) != flush.last_id:
                writer.failure = build_taken_error()
        elif isinstance(answer, Exception):
            writer.serve_alone(flush.events)
            writer.failure = away()
        elif answer is None:
            writer.is_dropped = not writer.has_written or await self._was_dropped(writer.response_id)
            if not writer.is_dropped:
                writer.serve_alone(flush.events)
                writer.failure = EventsLost("The events of this response were lost.")

    async def _newest_id(self, response_id: str) -> str | None:
        newest = await await_answer(self._client.xrevrange(stream_key(response_id), count=1))
        return newest[0][0].decode() if newest else None

    async def _delete_own(self, flush: Flush, failure: BallastError) -> None:
        """Delete the stream of a response whose writing has failed, because its end marker will never be written.

        A stream that another process has taken over, or sealed, is that one's.
        """
        response_id = flush.writer.response_id
        if not isinstance(failure, Conflict):
            await await_answer(self._delete_where_last([stream_key(response_id)], [flush.last_id]))

    async def _was_dropped(self, response_id: str) -> bool:
        return bool(await await_answer(self._client.exists(name_dropped_key(response_id))))


def build_taken_error() -> TurnTaken:
    """Build the error of a writer whose stream another process writes."""
    return TurnTaken("Another process writes the events of this response.")


def _rank(answer: object) -> int:
    """Order answers: a missing stream is the worst, then errors, then success."""
    if answer is None:
        return 0
    if isinstance(answer, Exception):
        return 2 if REPEATED in str(answer) else 1
    return 3
