"""Retention in the memory event log."""

from backend.adapters.memory.event_log import MemoryEventLog
from tests.contract.event_cases import ManualTimer, make_events, read_all


async def test_events_go_when_their_retention_ends() -> None:
    timer = ManualTimer()
    log = MemoryEventLog(600.0, timer)
    await log.append("resp_a", make_events(0, 2))
    assert timer.calls == []
    await log.close("resp_a")
    assert [seconds for seconds, *_ in timer.calls] == [600.0]
    assert await read_all(log, "resp_a") == list(make_events(0, 2))
    timer.fire()
    assert not await log.exists("resp_a")
    assert await read_all(log, "resp_a") == []


async def test_a_dropped_log_leaves_no_timer_for_its_successor() -> None:
    timer = ManualTimer()
    log = MemoryEventLog(600.0, timer)
    await log.append("resp_a", make_events(0, 1))
    await log.close("resp_a")
    await log.drop("resp_a")
    await log.append("resp_a", make_events(0, 1))
    timer.fire()
    assert await log.exists("resp_a")
