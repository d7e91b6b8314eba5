"""Events and signals while Redis is away, comes back, or comes back empty."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

import pytest

from backend.foundation.redis.client import await_answer, check_redis_reachable, connect
from backend.streams.redis.event_log import RedisEventLog
from backend.streams.redis.presence import RedisPresence
from backend.streams.redis.stop_signals import RedisStopSignals
from shared.errors import Conflict, EventsLost, Unavailable
from tests.contract.event_cases import make_events, read_all, reading
from tests.fakes.supervision import make_supervisor
from tests.patience import PATIENCE_SECONDS, until
from tests.servers.valkey import ValkeyServer


@pytest.fixture
async def client(valkey_url: str) -> AsyncIterator[Any]:
    opened: Any = connect(valkey_url)
    yield opened
    await opened.aclose()


@pytest.fixture
async def log(client: Any) -> AsyncIterator[RedisEventLog]:
    opened = RedisEventLog(client, make_supervisor(), 600.0)
    yield opened
    await opened.aclose()


@pytest.fixture
async def impatient(client: Any) -> AsyncIterator[RedisEventLog]:
    opened = RedisEventLog(client, make_supervisor(), 600.0, patience_seconds=0.0)
    yield opened
    await opened.aclose()


async def test_a_restart_in_mid_stream_loses_and_doubles_nothing(
    valkey_server: ValkeyServer, log: RedisEventLog
) -> None:
    await log.append("resp_a", make_events(0, 5))
    async with aclosing(reading(log, "resp_a")) as batches:
        assert await anext(batches) == make_events(0, 5)
        valkey_server.kill()
        await log.append("resp_a", make_events(5, 5))
        valkey_server.restart()
        await log.append("resp_a", make_events(10, 5))
        await log.close("resp_a")
        rest = [event async for batch in batches for event in batch]
    assert rest == list(make_events(5, 10))
    assert await read_all(log, "resp_a") == list(make_events(0, 15))


async def test_redis_that_stays_away_is_a_clear_error(
    valkey_server: ValkeyServer, impatient: RedisEventLog, client: Any
) -> None:
    await impatient.append("resp_a", make_events(0, 1))
    async with aclosing(reading(impatient, "resp_a")) as batches:
        assert await anext(batches) == make_events(0, 1)
        valkey_server.kill()
        try:
            await impatient.append("resp_a", make_events(1, 1))
            with pytest.raises(Unavailable):
                await impatient.close("resp_a")
            with pytest.raises(Unavailable):
                await impatient.append("resp_b", make_events(0, 1))
            assert await anext(batches) == make_events(1, 1)
            with pytest.raises(Unavailable):
                await anext(batches)
            with pytest.raises(Unavailable):
                await impatient.exists("resp_a")
            with pytest.raises(Unavailable):
                await RedisStopSignals(client, make_supervisor()).send("resp_a")
        finally:
            valkey_server.restart()
    assert not await impatient.exists("resp_c")


async def test_who_opens_a_log_does_not_wait_as_long_as_who_goes_on(valkey_server: ValkeyServer, client: Any) -> None:
    log = RedisEventLog(client, make_supervisor(), 600.0, patience_seconds=3600.0, opening_seconds=0.05)
    begun = await begun_in(log)
    valkey_server.kill()
    try:
        await log.append(begun, make_events(1, 1))
        with pytest.raises(Unavailable):
            await log.append("resp_b", make_events(0, 1))
        with pytest.raises(Unavailable):
            await log.close("resp_b")
    finally:
        valkey_server.restart()
    await log.close(begun)
    assert await read_all(log, begun) == list(make_events(0, 2))
    assert not await log.exists("resp_b")
    await log.aclose()


async def begun_in(log: RedisEventLog) -> str:
    """Begin a log with one event and return its name; on a busy machine only a later one may come in time."""
    for number in itertools.count():
        name = f"resp_begun_{number}"
        try:
            await log.append(name, make_events(0, 1))
        except Unavailable:
            continue
        return name
    raise AssertionError("counting has no end")


async def test_a_log_that_was_given_up_on_its_way_leaves_nothing(client: Any) -> None:
    """Its writer gave up just as Redis took the first events."""
    log = RedisEventLog(client, make_supervisor(), 600.0, opening_seconds=0.0)
    with pytest.raises(Unavailable):
        await log.append("resp_a", make_events(0, 1))
    await log.close("resp_b")  # which is written behind what was under way
    assert not await log.exists("resp_a")
    await log.aclose()


async def test_silence_counts_after_a_while_and_ends_with_an_answer(valkey_server: ValkeyServer, client: Any) -> None:
    presence = RedisPresence(client, interval_seconds=0.01, away_after_seconds=0.05)
    assert not presence.is_away
    watching = presence.start(make_supervisor())
    async with asyncio.timeout(PATIENCE_SECONDS):
        await client.ping()
        valkey_server.kill()
        await until(lambda: presence.is_away)
        valkey_server.restart()
        await until(lambda: not presence.is_away)
    watching.cancel()


async def test_events_that_redis_lost_are_an_error_for_the_writer_and_readers_elsewhere(
    client: Any, log: RedisEventLog, impatient: RedisEventLog
) -> None:
    await log.append("resp_a", make_events(0, 2))
    async with (
        aclosing(reading(log, "resp_a")) as batches,
        aclosing(reading(log, "resp_a")) as late,
        aclosing(reading(impatient, "resp_a")) as elsewhere,
    ):
        assert await anext(batches) == await anext(elsewhere) == make_events(0, 2)
        await client.flushall()
        await log.append("resp_a", make_events(2, 1))
        assert await anext(batches) == make_events(2, 1)
        with pytest.raises(EventsLost):
            await log.append("resp_a", make_events(3, 1))
        assert await anext(batches) == make_events(3, 1)
        assert await log.exists("resp_a")
        assert await anext(late) == make_events(0, 4)
        with pytest.raises(EventsLost):
            await anext(elsewhere)
        with pytest.raises(EventsLost):
            await log.close("resp_a")
        with pytest.raises(EventsLost):
            await anext(batches)
    assert not await log.exists("resp_a")


@pytest.mark.parametrize("lapses_at", [1, 2], ids=["before the outage is noticed", "while it serves alone"])
async def test_a_holder_whose_lease_has_lapsed_serves_nobody_alone(
    valkey_server: ValkeyServer, client: Any, lapses_at: int
) -> None:
    """Another process may have gone on with the turn, under the same numbers."""
    lapsed = asyncio.Event()
    log = RedisEventLog(
        client, make_supervisor(), 600.0, tenure=lambda: lambda: not lapsed.is_set(), patience_seconds=0.0
    )
    await log.append("resp_a", make_events(0, 1))
    async with aclosing(reading(log, "resp_a")) as batches:
        assert await anext(batches) == make_events(0, 1)
        valkey_server.kill()
        try:
            for number in range(1, lapses_at):
                await log.append("resp_a", make_events(number, 1))
                assert await anext(batches) == make_events(number, 1)
            lapsed.set()
            with suppress(Unavailable):
                await log.append("resp_a", make_events(lapses_at, 1))
            with pytest.raises(Unavailable):
                await anext(batches)
        finally:
            valkey_server.restart()
    await log.aclose()


async def test_a_second_writer_is_told_so_and_writes_nothing(client: Any, log: RedisEventLog) -> None:
    await log.append("resp_a", make_events(0, 4))
    other = RedisEventLog(client, make_supervisor(), 600.0)
    with pytest.raises(Conflict):
        await other.append("resp_a", make_events(2, 1))
    await log.close("resp_a")
    late = RedisEventLog(client, make_supervisor(), 600.0)
    with pytest.raises(Conflict):
        await late.append("resp_a", make_events(4, 1))
    assert await read_all(log, "resp_a") == list(make_events(0, 4))
    await other.aclose()
    await late.aclose()


async def test_an_address_that_cannot_be_used_is_told_without_its_password(valkey_url: str) -> None:
    with pytest.raises(ValueError, match="percent-encoded") as caught:
        connect("redis://:hush/hush@cache:6379/0")
    assert "hush" not in str(caught.value)
    locked: Any = connect(valkey_url.replace("://", "://:secret@"))
    with pytest.raises(ValueError, match=r"cannot use redis://127.0.0.1:\d+/0 \(AuthenticationError\)"):
        await check_redis_reachable(locked, valkey_url)
    await locked.aclose()


async def test_streams_expire_by_themselves(client: Any) -> None:
    log = RedisEventLog(client, make_supervisor(), 600.0)
    await log.append("resp_a", make_events(0, 1))
    assert 3500 < await client.ttl("ballast:events:resp_a") <= 3600
    await log.close("resp_a")
    assert 500 < await client.ttl("ballast:events:resp_a") <= 600
    await log.drop("resp_a")
    assert [key async for key in client.scan_iter(match="*resp_a*")] == [b"ballast:dropped:resp_a"]
    assert 3500 < await client.ttl("ballast:dropped:resp_a") <= 3600
    await log.aclose()


async def test_closing_the_log_lets_nobody_wait(valkey_server: ValkeyServer, client: Any) -> None:
    log = RedisEventLog(client, make_supervisor(), 600.0)
    await log.append("resp_a", make_events(0, 1))
    valkey_server.kill()
    try:
        ending = asyncio.create_task(log.close("resp_a"))
        waiting = asyncio.create_task(log.append("resp_b", make_events(0, 1)))
        await asyncio.wait([ending, waiting], timeout=0)
        await log.aclose()
        outcomes = await asyncio.gather(ending, waiting, return_exceptions=True)
    finally:
        valkey_server.restart()
    assert [type(outcome) for outcome in outcomes] == [Unavailable, Unavailable]


async def test_a_wish_reaches_who_waited_through_a_restart(
    valkey_server: ValkeyServer, client: Any, valkey_url: str
) -> None:
    here, there = RedisStopSignals(client, make_supervisor()), RedisStopSignals(client, make_supervisor())
    waiting = asyncio.create_task(here.wait("resp_a"))
    await there.send("resp_before")
    await here.wait("resp_before")
    valkey_server.kill()
    valkey_server.restart()
    await there.send("resp_a")
    await waiting
    await here.aclose()
    await there.aclose()


async def test_a_cancellation_at_any_moment_is_kept(client: Any) -> None:
    for moment in range(30):
        log = RedisEventLog(client, make_supervisor(), 600.0)
        appending = asyncio.create_task(log.append(f"resp_{moment}", make_events(0, 1)))
        for _ in range(moment):
            await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await log.aclose()
            (outcome,) = await asyncio.gather(appending, return_exceptions=True)
        assert outcome is None or isinstance(outcome, Unavailable)


async def test_who_leaves_before_the_answer_gives_nobody_that_of_another(
    valkey_server: ValkeyServer, client: Any
) -> None:
    for name in ("a", "b"):
        await client.set(name, name.encode(), px=60_000)
    await client.mget(["a"])
    with valkey_server.frozen():
        leaving, staying = (asyncio.ensure_future(client.mget([name])) for name in ("a", "b"))
        await asyncio.sleep(0)
        leaving.cancel()
    assert await staying == [b"b"]
    assert leaving.cancelled()


async def test_a_connection_that_broke_is_replaced(valkey_server: ValkeyServer, client: Any) -> None:
    for _ in range(2):
        assert await client.mget(["a"]) == [None]
        valkey_server.answer("CLIENT KILL TYPE normal")


async def test_a_redis_that_does_not_answer_is_away(valkey_server: ValkeyServer, client: Any) -> None:
    client.connection_pool.connection_kwargs |= dict.fromkeys(("socket_timeout", "socket_connect_timeout"), 0.05)
    await client.mget(["a"])
    with valkey_server.frozen(), pytest.raises(Unavailable):
        await await_answer(client.mget(["a"]))
    client.connection_pool.connection_kwargs |= dict.fromkeys(
        ("socket_timeout", "socket_connect_timeout"), PATIENCE_SECONDS
    )
    assert await client.mget(["a"]) == [None]
