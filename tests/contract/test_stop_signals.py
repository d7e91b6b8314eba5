"""One contract for every `StopSignals`."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.contract.event_cases import KINDS, Replicas, open_replicas


@pytest.fixture(params=KINDS)
async def replicas(request: pytest.FixtureRequest) -> AsyncIterator[Replicas]:
    async with open_replicas(request.param, request) as opened:
        yield opened


async def test_a_wish_from_before_counts(replicas: Replicas) -> None:
    await replicas.signals_there.send("resp_a")
    await replicas.signals_here.wait("resp_a")
    await replicas.signals_here.wait("resp_a")


async def test_a_wish_wakes_who_waits(replicas: Replicas) -> None:
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(replicas.signals_here.wait("resp_a")) for _ in range(3)]
        # A turn of the same replica that has returned proves that the subscription stands.
        await replicas.signals_there.send("resp_before")
        await replicas.signals_here.wait("resp_before")
        assert not any(task.done() for task in waiting)
        await replicas.signals_there.send("resp_a")


async def test_a_wish_sent_twice_is_one(replicas: Replicas) -> None:
    await replicas.signals_there.send("resp_a")
    await replicas.signals_there.send("resp_a")
    await replicas.signals_here.wait("resp_a")


async def test_a_wish_concerns_one_turn(replicas: Replicas) -> None:
    other = asyncio.create_task(replicas.signals_here.wait("resp_b"))
    await replicas.signals_there.send("resp_a")
    await replicas.signals_here.wait("resp_a")
    assert not other.done()
    other.cancel()
    await asyncio.wait([other])
    assert other.cancelled()


async def test_who_stops_waiting_leaves_the_others(replicas: Replicas) -> None:
    first, second = (asyncio.create_task(replicas.signals_here.wait("resp_a")) for _ in range(2))
    await replicas.signals_there.send("resp_before")
    await replicas.signals_here.wait("resp_before")
    first.cancel()
    await asyncio.wait([first])
    await replicas.signals_there.send("resp_a")
    await second


async def test_many_turns_wait_side_by_side(replicas: Replicas) -> None:
    names = [f"resp_{number}" for number in range(100)]
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(replicas.signals_here.wait(name))
        for name in reversed(names):
            await replicas.signals_there.send(name)
