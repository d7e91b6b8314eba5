"""What the process that writes a stream knows of it, without a Redis."""

import asyncio
from typing import Any, cast

import pytest
from redis.exceptions import ResponseError

from backend.streams.redis.entries import seal_id
from backend.streams.redis.event_log import RedisEventLog
from backend.streams.redis.reading import Patience, StreamReader
from backend.streams.redis.writers import Flush, Writer
from shared.errors import TurnTaken
from tests.contract.event_cases import make_events
from tests.fakes.supervision import make_supervisor


async def has_answer(writer: Writer) -> bool:
    """Let a reader wait for events behind number 1, wake it without one, and return what it then says."""
    reader = StreamReader(cast(Any, None), "resp_a", 1, writer, Patience(10.0))
    waiting = asyncio.ensure_future(reader.next_events())
    await asyncio.sleep(0)
    writer.flushes.note()
    assert await waiting == ()
    return reader.has_answer


async def test_events_that_must_be_written_yet_are_not_missing() -> None:
    writer = Writer("resp_a")
    writer.add(make_events(0, 2))
    Flush(writer, make_events(0, 2), ends=False).settle()
    assert await has_answer(writer)
    writer.add(make_events(2, 1))
    assert not await has_answer(writer)


async def test_an_end_marker_that_must_be_written_yet_is_not_missing() -> None:
    writer = Writer("resp_a")
    writer.add(make_events(0, 2))
    Flush(writer, make_events(0, 2), ends=False).settle()
    writer.is_ending = True
    assert not await has_answer(writer)


class LateAnswers(list[str]):
    """A Redis, and its pipeline, that answers when asked again, and has what another process wrote by then."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    def register_script(self, _: str) -> None:
        """Run none."""

    def pipeline(self, transaction: bool) -> "LateAnswers":
        self.clear()
        return self

    def xadd(self, name: str, *_: object, **__: object) -> None:
        self.append(name)

    pexpire = xadd

    async def execute(self, raise_on_error: bool) -> list[object]:
        if not self.asked.is_set():
            self.asked.set()
            await asyncio.Event().wait()
        return [ResponseError("The ID is equal or smaller") for _ in self]

    async def xrevrange(self, _: str, count: int) -> list[tuple[bytes, dict[bytes, bytes]]]:
        return [(seal_id(1).encode(), {})]


async def test_a_process_that_stood_still_hears_what_happened_meanwhile() -> None:
    """When it goes on, the time for an answer is over, whether or not Redis was there."""
    late, loop = LateAnswers(), asyncio.get_running_loop()
    log = RedisEventLog(cast(Any, late), make_supervisor(), 600.0, opening_seconds=7200.0)
    appending = asyncio.create_task(log.append("resp_a", make_events(0, 1)))
    await late.asked.wait()
    now = loop.time
    vars(loop)["time"] = lambda: now() + 3600.0
    with pytest.raises(TurnTaken):
        await appending
    await log.aclose()
