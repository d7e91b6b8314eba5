"""One contract for every `EventLog`."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.openai_api.domain.response_events import LoggedEvent
from shared.errors import Conflict, InternalError, Unavailable
from tests.contract.event_cases import KINDS, Replicas, make_events, open_replicas, read_all, read_some, reading

_fresh = itertools.count()


@pytest.fixture(params=KINDS)
async def replicas(request: pytest.FixtureRequest) -> AsyncIterator[Replicas]:
    async with open_replicas(request.param, request) as opened:
        yield opened


async def test_an_ended_log_is_read_whole_from_anywhere(replicas: Replicas) -> None:
    await replicas.here.append("resp_a", make_events(0, 3))
    await replicas.here.append("resp_a", ())
    await replicas.here.append("resp_a", make_events(3, 4))
    await replicas.here.close("resp_a")
    for log in (replicas.here, replicas.there):
        assert await log.exists("resp_a")
        for after in range(-1, 9):
            assert await read_all(log, "resp_a", after) == list(make_events(0, 7)[after + 1 :])


async def test_an_unknown_log_ends_at_once(replicas: Replicas) -> None:
    assert not await replicas.here.exists("resp_a")
    assert await read_all(replicas.here, "resp_a") == []


async def test_closing_twice_or_nothing_changes_nothing(replicas: Replicas) -> None:
    await replicas.here.close("resp_b")
    assert not await replicas.here.exists("resp_b")
    await replicas.here.append("resp_a", make_events(0, 1))
    await replicas.here.close("resp_a")
    await replicas.here.close("resp_a")
    assert len(await read_all(replicas.there, "resp_a")) == 1


async def test_what_was_first_appended_is_there_at_once_for_everybody(replicas: Replicas) -> None:
    await replicas.here.append("resp_a", make_events(0, 2))
    assert await replicas.there.exists("resp_a")
    assert await read_some(replicas.there, "resp_a", 2) == list(make_events(0, 2))


async def test_a_reader_follows_and_ends_with_the_log(replicas: Replicas) -> None:
    await replicas.here.append("resp_a", make_events(0, 1))
    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(read_all(log, "resp_a")) for log in (replicas.here, replicas.there)]
        late = group.create_task(read_all(replicas.there, "resp_a", 5))
        for number in range(1, 20):
            await replicas.here.append("resp_a", make_events(number, 1))
        await replicas.here.close("resp_a")
    for reader in readers:
        assert reader.result() == list(make_events(0, 20))
    assert late.result() == list(make_events(6, 14))


async def test_a_reader_that_leaves_disturbs_nobody(replicas: Replicas) -> None:
    await replicas.here.append("resp_a", make_events(0, 1))
    leaving = asyncio.create_task(read_all(replicas.there, "resp_a"))
    staying = asyncio.create_task(read_all(replicas.there, "resp_a"))
    await read_some(replicas.there, "resp_a", 1)
    leaving.cancel()
    # It may leave only when its read returns, so waiting for it first would be silence for the reader that stays.
    await replicas.here.append("resp_a", make_events(1, 1))
    await replicas.here.close("resp_a")
    assert await staying == list(make_events(0, 2))
    await asyncio.wait([leaving])
    assert leaving.cancelled()


async def test_a_log_without_its_end_is_cut_off_for_all_readers_and_writers(replicas: Replicas) -> None:
    await replicas.here.append("resp_a", make_events(0, 2))
    async with aclosing(reading(replicas.there, "resp_a")) as batches:
        assert await anext(batches) == make_events(0, 2)
        assert await replicas.there.cut_off("resp_a")
        assert [batch async for batch in batches] == []
    with suppress(Conflict):  # the writer learns of it at once, or when it writes
        await replicas.here.append("resp_a", make_events(2, 2))
        await replicas.here.close("resp_a")
    for log in (replicas.here, replicas.there):
        assert await read_all(log, "resp_a") == []


async def test_a_closed_log_is_not_cut_off(replicas: Replicas) -> None:
    await replicas.here.append("resp_a", make_events(0, 2))
    await replicas.here.close("resp_a")
    assert not await replicas.there.cut_off("resp_a")
    for log in (replicas.here, replicas.there):
        assert await read_all(log, "resp_a") == list(make_events(0, 2))


@pytest.mark.parametrize("kept", [0, 2])
async def test_the_next_writer_goes_on_behind_events_that_were_lost(replicas: Replicas, kept: int) -> None:
    await replicas.here.append("resp_a", make_events(0, kept))
    replicas.here.leave("resp_a")
    taken = [event async for batch in replicas.there.take_over("resp_a", 1) for event in batch]
    assert taken == list(make_events(0, kept))
    await replicas.there.append("resp_a", make_events(5, 2))
    with pytest.raises(InternalError):
        await replicas.there.append("resp_a", make_events(8, 1))
    assert await read_some(replicas.there, "resp_a", 2, after=4) == list(make_events(5, 2))
    assert await read_some(replicas.here, "resp_a", kept + 2) == [*make_events(0, kept), *make_events(5, 2)]


async def test_a_closed_log_is_not_taken_over(replicas: Replicas) -> None:
    await replicas.here.append("resp_a", make_events(0, 2))
    await replicas.here.close("resp_a")
    with pytest.raises(Conflict):
        await anext(aiter(replicas.there.take_over("resp_a", 1)))


async def test_logs_do_not_mix(replicas: Replicas) -> None:
    await replicas.here.append("resp_a", make_events(0, 3))
    await replicas.there.append("resp_b", make_events(0, 1))
    await replicas.there.close("resp_b")
    assert await read_all(replicas.here, "resp_b") == list(make_events(0, 1))
    assert await read_some(replicas.there, "resp_a", 3) == list(make_events(0, 3))


@pytest.mark.parametrize("first", [1, 3, 7])
async def test_a_number_out_of_turn_is_refused(replicas: Replicas, first: int) -> None:
    await replicas.here.append("resp_a", make_events(0, 2))
    if first == 3:
        await replicas.here.append("resp_a", make_events(2, 2))
    with pytest.raises(InternalError):
        await replicas.here.append("resp_a", make_events(first, 1))


async def test_dropping_ends_readers_and_forgets(replicas: Replicas) -> None:
    await replicas.here.append("resp_a", make_events(0, 2))
    async with aclosing(reading(replicas.there, "resp_a")) as batches:
        assert await anext(batches) == make_events(0, 2)
        await replicas.here.drop("resp_a")
        assert [batch async for batch in batches] == []
    assert not await replicas.here.exists("resp_a")
    assert await read_all(replicas.here, "resp_a") == []
    await replicas.here.drop("resp_a")


async def test_events_of_a_dropped_log_vanish(replicas: Replicas) -> None:
    await replicas.here.append("resp_a", make_events(0, 2))
    await replicas.there.drop("resp_a")
    for number in range(2, 5):
        await replicas.here.append("resp_a", make_events(number, 1))
    await replicas.here.close("resp_a")
    assert not await replicas.there.exists("resp_a")


async def test_much_is_read_in_order_by_slow_and_fast(replicas: Replicas) -> None:
    total = 3000

    async def write() -> None:
        for first in range(0, total, 10):
            await replicas.here.append("resp_a", make_events(first, 10))
        await replicas.here.close("resp_a")

    await replicas.here.append("resp_b", make_events(0, 1))
    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        await read_some(replicas.there, "resp_b", 1)
    assert await read_all(replicas.there, "resp_a") == list(make_events(0, total))


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    flushes=st.lists(st.integers(1, 5), min_size=1, max_size=8),
    readers=st.lists(st.tuples(st.integers(0, 8), st.integers(-1, 12), st.booleans()), max_size=5),
)
async def test_every_reader_sees_every_number_once_in_order(
    replicas: Replicas, flushes: list[int], readers: list[tuple[int, int, bool]]
) -> None:
    """Readers begin before any of the flushes, anywhere in the numbers, at either replica."""
    response_id = f"resp_{next(_fresh)}"
    total = sum(flushes)
    readings: list[tuple[int, asyncio.Task[list[LoggedEvent]]]] = []
    async with asyncio.TaskGroup() as group:
        written = 0
        for place, count in enumerate([*flushes, 0]):
            await replicas.here.append(response_id, make_events(written, count))
            written += count
            for begin, after, elsewhere in readers:
                if begin == place:
                    log = replicas.there if elsewhere else replicas.here
                    readings.append((after, group.create_task(read_all(log, response_id, after))))
        await replicas.here.close(response_id)
    for after, reader in readings:
        assert reader.result() == list(make_events(0, total)[after + 1 :])


async def test_a_response_without_end_fills_its_room_and_no_more(replicas: Replicas) -> None:
    """Readers get what was appended until then, and the end."""
    large = [event._replace(body=bytes(4 * 2**20)) for event in make_events(0, 16)]
    for event in large[:15]:
        await replicas.here.append("resp_a", [event])
    with pytest.raises(Unavailable):
        await replicas.here.append("resp_a", large[15:])
    with pytest.raises(Unavailable):
        await replicas.here.append("resp_a", make_events(15, 1))
    await replicas.here.append("resp_b", make_events(0, 1))
    await replicas.here.close("resp_a")
    assert len(await read_all(replicas.there, "resp_a")) == 15
