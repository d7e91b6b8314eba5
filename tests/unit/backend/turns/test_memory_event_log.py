"""Retention in the memory event log, and how little an ended log takes."""

import asyncio
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.turns.domain.response_events import LoggedEvent, encode_event
from backend.turns.memory.event_log import MemoryEventLog, pack_events, unpack_events
from shared.errors import Conflict
from tests.contract.event_cases import ManualTimer, make_events, read_all, reading


async def ended(log: MemoryEventLog, response_id: str, count: int = 2) -> None:
    await log.append(response_id, make_events(0, count))
    await log.close(response_id)


def test_an_ended_answer_takes_a_small_part_of_its_events() -> None:
    place = {"item_id": "msg_4be1a7", "output_index": 0, "content_index": 0}
    drafts = [{"type": "response.output_text.delta", **place, "delta": f"word {number} "} for number in range(50)]
    events = [encode_event({**draft, "sequence_number": number}) for number, draft in enumerate(drafts)]
    assert len(pack_events(events)) < sum(len(event.body) for event in events) / 8


async def test_events_go_when_their_retention_ends() -> None:
    timer = ManualTimer()
    log = MemoryEventLog(600.0, timer)
    await log.append("resp_a", make_events(0, 2))
    assert timer.calls == []
    await log.close("resp_a")
    assert [seconds for seconds, *_ in timer.calls] == [10.0]
    timer.fire()
    assert [seconds for seconds, *_ in timer.calls] == [600.0]
    assert await read_all(log, "resp_a") == list(make_events(0, 2))
    timer.fire()
    assert not await log.exists("resp_a")
    assert await read_all(log, "resp_a") == []
    assert timer.calls == []


async def test_logs_that_end_together_go_together_and_later_ones_later() -> None:
    timer = ManualTimer()
    log = MemoryEventLog(600.0, timer)
    await ended(log, "resp_a")
    await ended(log, "resp_b")
    assert len(timer.calls) == 1
    timer.fire()
    await ended(log, "resp_c")
    timer.fire()
    kept = [response_id for response_id in ("resp_a", "resp_b", "resp_c") if await log.exists(response_id)]
    assert kept == ["resp_c"]


async def test_a_dropped_log_takes_no_successor_with_it() -> None:
    timer = ManualTimer()
    log = MemoryEventLog(600.0, timer)
    await ended(log, "resp_a")
    await log.drop("resp_a")
    await log.append("resp_a", make_events(0, 1))
    timer.fire()
    timer.fire()
    assert await log.exists("resp_a")


async def test_nothing_comes_behind_the_last_event() -> None:
    log = MemoryEventLog(600.0, ManualTimer())
    await ended(log, "resp_a")
    with pytest.raises(Conflict):
        await log.append("resp_a", make_events(2, 1))
    assert await read_all(log, "resp_a") == list(make_events(0, 2))


async def test_dropping_an_ended_log_ends_who_still_reads_it() -> None:
    log = MemoryEventLog(600.0, ManualTimer())
    await log.append("resp_a", make_events(0, 2))
    async with aclosing(reading(log, "resp_a")) as batches:
        assert await anext(batches) == make_events(0, 2)
        await log.append("resp_a", make_events(2, 3))
        await log.close("resp_a")
        await log.drop("resp_a")
        assert [batch async for batch in batches] == []


async def test_a_slow_reader_gets_what_came_with_the_end() -> None:
    log = MemoryEventLog(600.0, ManualTimer())
    await log.append("resp_a", make_events(0, 2))
    async with aclosing(reading(log, "resp_a")) as batches:
        assert await anext(batches) == make_events(0, 2)
        waiting = asyncio.ensure_future(anext(batches))
        await log.append("resp_a", make_events(2, 3))
        await log.close("resp_a")
        assert await waiting == make_events(2, 3)
        assert [batch async for batch in batches] == []


@given(
    st.lists(st.tuples(st.text("abc._", min_size=1), st.binary().filter(lambda body: b"\n" not in body)), min_size=1),
    st.integers(0, 5),
)
def test_what_is_packed_is_unpacked_as_it_was(written: list[tuple[str, bytes]], first: int) -> None:
    events = tuple(
        LoggedEvent(sequence_number=number, type=kind, body=body) for number, (kind, body) in enumerate(written)
    )
    assert unpack_events(pack_events(events), first) == events[first:]
