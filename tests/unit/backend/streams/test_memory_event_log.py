"""Retention in the memory event log, and how little ended logs take."""

import asyncio
import random
import tracemalloc
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.openai_api.domain.response_events import LoggedEvent, encode_event
from backend.openai_api.domain.response_object import build_ending
from backend.streams.memory.ended_events import BYTES_BESIDE, pack_events, unpack_events
from backend.streams.memory.event_log import BYTES_PACKED_HERE, MemoryEventLog
from shared.errors import Conflict, Unavailable
from shared.models.events import FinishReason, TextDelta
from tests.contract.event_cases import ManualTimer, make_events, read_all, reading
from tests.unit.backend.turns.samples import USAGE, projection


async def ended(log: MemoryEventLog, response_id: str, count: int = 2) -> None:
    await log.append(response_id, make_events(0, count))
    await log.close(response_id)


def test_an_ended_answer_takes_a_small_part_of_its_events() -> None:
    place = {"item_id": "msg_4be1a7", "output_index": 0, "content_index": 0}
    drafts = [{"type": "response.output_text.delta", **place, "delta": f"word {number} "} for number in range(50)]
    events = [encode_event({**draft, "sequence_number": number}) for number, draft in enumerate(drafts)]
    assert len(pack_events(events)) < sum(len(event.body) for event in events) / 8


def test_an_answer_of_one_word_takes_a_small_part_of_its_events() -> None:
    made = projection()
    events = [*made.start(), *made.feed(TextDelta(text=" ballast"))]
    events += made.finish(build_ending(FinishReason.STOP, USAGE), 1_700_000_001)[1]
    assert len(pack_events(events)) < sum(len(event.body) for event in events) / 14


async def test_ended_logs_together_take_no_more_than_their_bound() -> None:
    bound = 1 << 20
    log = MemoryEventLog(600.0, ManualTimer(), most_bytes=bound)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(6_000):
            await ended(log, f"resp_{number:032}")
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    kept = [number for number in range(6_000) if await log.exists(f"resp_{number:032}")]
    assert kept == list(range(6_000 - len(kept), 6_000))
    assert bound * 0.8 < len(kept) * (BYTES_BESIDE + len(pack_events(make_events(0, 2)))) <= bound
    assert taken <= bound


@pytest.mark.parametrize("ending", ["drop", "retention"])
async def test_what_goes_leaves_its_room_to_others(ending: str) -> None:
    timer = ManualTimer()
    log = MemoryEventLog(600.0, timer, most_bytes=40 * (BYTES_BESIDE + len(pack_events(make_events(0, 2)))))
    for round_number in range(3):
        ids = [f"resp_{round_number}_{number}" for number in range(40)]
        for response_id in ids:
            await ended(log, response_id)
        assert all([await log.exists(response_id) for response_id in ids])
        if ending == "retention":
            timer.fire()
            timer.fire()
        else:
            for response_id in ids:
                await log.drop(response_id)
                await log.drop(response_id)
        assert not any([await log.exists(response_id) for response_id in ids])


async def test_the_oldest_go_first_though_they_ended_in_another_part_of_the_retention() -> None:
    timer = ManualTimer()
    log = MemoryEventLog(600.0, timer, most_bytes=10 * (BYTES_BESIDE + len(pack_events(make_events(0, 2)))))
    await ended(log, "resp_old")
    timer.fire()
    for number in range(10):
        await ended(log, f"resp_{number}")
    assert not await log.exists("resp_old")
    assert await log.exists("resp_0")
    timer.fire()
    assert await log.exists("resp_0")


async def test_an_answer_too_large_to_keep_pushes_out_no_other_and_is_read_to_its_end() -> None:
    log = MemoryEventLog(600.0, ManualTimer(), most_bytes=8_192)
    await ended(log, "resp_small")
    large = LoggedEvent(
        sequence_number=0, type="response.created", body=random.Random(1).randbytes(4_096).hex().encode()
    )
    await log.append("resp_large", (large,))
    async with aclosing(reading(log, "resp_large")) as batches:
        assert await anext(batches) == (large,)
        await log.append("resp_large", make_events(1, 2))
        await log.close("resp_large")
        assert await anext(batches) == make_events(1, 2)
        assert [batch async for batch in batches] == []
    assert not await log.exists("resp_large")
    assert await log.exists("resp_small")


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


async def test_running_turns_together_take_no_more_than_their_bound() -> None:
    log = MemoryEventLog(600.0, ManualTimer(), most_open_bytes=10_000)
    large = [event._replace(body=bytes(4_000)) for event in make_events(0, 2)]
    for response_id in ("resp_a", "resp_b"):
        await log.append(response_id, large[:1])
    for response_id in ("resp_a", "resp_c"):
        with pytest.raises(Unavailable):
            await log.append(response_id, large[1:] if response_id == "resp_a" else large[:1])
    await log.drop("resp_b")
    with pytest.raises(Unavailable):
        await log.append("resp_a", make_events(2, 1))  # the one before it is missing
    await log.append("resp_d", large[:1])
    await log.close("resp_a")
    await log.append("resp_e", large[:1])


@pytest.mark.parametrize("is_dropped", [False, True])
async def test_a_long_log_is_packed_beside_the_event_loop(is_dropped: bool) -> None:
    body = b"x" * BYTES_PACKED_HERE
    long = tuple(LoggedEvent(sequence_number=number, type="a", body=body) for number in range(8))
    log = MemoryEventLog(600.0)
    await log.append("resp_a", long)
    closing = asyncio.create_task(log.close("resp_a"))
    await asyncio.sleep(0)
    assert not closing.done()
    assert [event async for batch in log.read("resp_a", -1) for event in batch] == list(long)
    with pytest.raises(Conflict):
        await log.append("resp_a", make_events(8, 1))
    await log.close("resp_a")
    if is_dropped:
        await log.drop("resp_a")
    await closing
    assert await log.exists("resp_a") is not is_dropped
    kept = [event async for batch in log.read("resp_a", 5) for event in batch]
    assert kept == ([] if is_dropped else list(long[6:]))
