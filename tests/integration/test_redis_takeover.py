"""Events of a response in Redis whose writer changes while others read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, NamedTuple

import pytest

from backend.turns.redis.client import connect
from backend.turns.redis.event_log import RedisEventLog
from shared.errors import Conflict, TurnTaken
from tests.contract.event_cases import make_events, reading
from tests.fakes.supervision import make_supervisor


class CountingReads:
    """A client that counts the commands which read streams."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        self.count += name == "xread"
        return getattr(self._client, name)


class Logs(NamedTuple):
    """The log as its first holder, the next one and an onlooker have it."""

    old: RedisEventLog
    new: RedisEventLog
    onlooker: RedisEventLog
    reads: CountingReads


@pytest.fixture
async def logs(valkey_url: str) -> AsyncIterator[Logs]:
    client: Any = connect(valkey_url)
    reads = CountingReads(client)
    old, new, onlooker = (RedisEventLog(each, make_supervisor(), 600.0) for each in (client, client, reads))  # pyright: ignore[reportArgumentType]
    yield Logs(old, new, onlooker, reads)
    for log in (old, new, onlooker):
        await log.aclose()
    await client.aclose()


async def sealed(log: RedisEventLog, fence: int) -> list[Any]:
    return [event async for batch in log.taken_over("resp_a", fence) for event in batch]


async def test_readers_of_a_holder_that_was_sealed_off_get_what_the_next_one_writes(logs: Logs) -> None:
    await logs.old.append("resp_a", make_events(0, 3))
    async with aclosing(reading(logs.old, "resp_a")) as batches:
        assert await anext(batches) == make_events(0, 3)
        assert await sealed(logs.new, 1) == list(make_events(0, 3))
        refused = [event.model_copy(update={"body": b'"refused"'}) for event in make_events(3, 2)]
        await logs.old.append("resp_a", refused)
        await logs.new.append("resp_a", make_events(3, 4))
        await logs.new.close("resp_a")
        rest = [event async for batch in batches for event in batch]
    assert rest == list(make_events(3, 4))
    with pytest.raises(Conflict):
        await logs.old.append("resp_a", make_events(5, 1))
    for log in (logs.old, logs.onlooker):
        assert [event async for batch in reading(log, "resp_a", 1) for event in batch] == list(make_events(2, 5))


async def test_readers_of_a_holder_that_leaves_get_what_the_next_one_writes(logs: Logs) -> None:
    await logs.old.append("resp_a", make_events(0, 3))
    async with aclosing(reading(logs.old, "resp_a")) as batches:
        assert await anext(batches) == make_events(0, 3)
        waiting = asyncio.ensure_future(anext(batches))
        await asyncio.sleep(0)
        await sealed(logs.new, 1)
        logs.old.leave("resp_a")
        await logs.new.append("resp_a", make_events(3, 1))
        await logs.new.close("resp_a")
        rest = [*await waiting, *[event async for batch in batches for event in batch]]
    assert rest == list(make_events(3, 1))


async def test_readers_wait_for_the_next_holder_instead_of_reading_again_and_again(logs: Logs) -> None:
    await logs.old.append("resp_a", make_events(0, 3))
    await sealed(logs.new, 1)
    await logs.new.append("resp_a", make_events(3, 1))
    async with aclosing(reading(logs.onlooker, "resp_a", 1)) as batches:
        seen = [event for _ in range(3) for event in await anext(batches)]
        waiting = asyncio.ensure_future(anext(batches))
        await asyncio.sleep(0.3)
        assert logs.reads.count < 6
        await logs.new.append("resp_a", make_events(4, 1))
        assert [*seen, *await waiting] == list(make_events(2, 3))


async def test_a_holder_that_comes_too_late_takes_nothing(logs: Logs) -> None:
    await logs.old.append("resp_a", make_events(0, 3))
    await sealed(logs.new, 2)
    await logs.new.append("resp_a", make_events(3, 1))
    with pytest.raises(TurnTaken):
        await sealed(logs.onlooker, 1)
    await logs.new.close("resp_a")
    assert [event async for batch in reading(logs.onlooker, "resp_a") for event in batch] == list(make_events(0, 4))
