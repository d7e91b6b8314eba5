"""What a reader beside the writer of a stream knows of it, without a Redis."""

import asyncio
from typing import Any, cast

from backend.streams.redis.reading import Patience, StreamReader
from backend.streams.redis.writers import Flush, Writer
from tests.contract.event_cases import make_events


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
