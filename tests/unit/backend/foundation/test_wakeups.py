"""Waiting for changes: who waits is woken once, and no earlier change counts."""

import asyncio
from typing import Any

from backend.foundation.services.wakeups import CallingEvent, Wakeups

AGES_SECONDS = 600.0


async def awaited(change: asyncio.Future[bool]) -> bool:
    return await change


async def test_a_change_wakes_all_that_wait():
    wakeups = Wakeups()
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(awaited(wakeups.wait_within(AGES_SECONDS))) for _ in range(3)]
        unbounded = group.create_task(awaited(wakeups.wait()))
        await asyncio.sleep(0)
        wakeups.note()
    assert [task.result() for task in waiting] == [True, True, True]
    assert unbounded.done()


async def test_a_change_before_does_not_count():
    wakeups = Wakeups()
    wakeups.note()
    assert not await wakeups.wait_within(0.0)


async def test_who_gave_up_or_was_cancelled_is_not_woken():
    wakeups = Wakeups()
    assert not await wakeups.wait_within(0.0)
    cancelled = asyncio.create_task(awaited(wakeups.wait_within(AGES_SECONDS)))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait({cancelled})
    assert cancelled.cancelled()
    wakeups.note()


async def test_who_is_cancelled_behind_the_change_is_cancelled():
    wakeups = Wakeups()
    waiting = asyncio.create_task(awaited(wakeups.wait_within(AGES_SECONDS)))
    await asyncio.sleep(0)
    waiting.cancel()
    wakeups.note()
    await asyncio.wait({waiting})
    assert waiting.cancelled()


async def test_behind_a_change_no_time_runs_out():
    failed = list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
    wakeups = Wakeups()
    change = wakeups.wait_within(0.0)
    wakeups.note()
    assert await change
    assert not await wakeups.wait_within(0.0)  # the loop has looked at all timers that were due before
    assert failed == []


async def test_an_event_calls_functions_while_their_block_runs_and_at_once_where_it_is_set():
    event, called = CallingEvent(), list[str]()
    with event.calling(lambda: called.append("first")):
        event.set()
        with event.calling(lambda: called.append("second")):
            event.set()
    event.set()
    assert called == ["first", "second", "first", "second"]
    await event.wait()
