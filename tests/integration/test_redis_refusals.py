"""Turns and their followers while Redis answers and does not do its work, or is silent without going away."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from backend.foundation.redis.client import connect
from backend.streams.redis.event_log import RedisEventLog
from backend.streams.redis.presence import RedisPresence
from shared.errors import Unavailable
from tests.contract.event_cases import make_events
from tests.fakes.chat_shell_scripted import ScriptedChatShell, answer
from tests.fakes.json_paths import at
from tests.fakes.openai_house import TurnHouse
from tests.fakes.supervision import make_supervisor
from tests.patience import PATIENCE_SECONDS
from tests.servers.valkey import ValkeyServer

SILENCE_SECONDS = 0.3
Trouble = Callable[[ValkeyServer], AbstractContextManager[None]]


def full(server: ValkeyServer) -> AbstractContextManager[None]:
    return server.set_to("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0")


def read_only(server: ValkeyServer) -> AbstractContextManager[None]:
    """Make it a copy of a server that does not answer."""
    return server.set_to("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE")


def forbidding(server: ValkeyServer) -> AbstractContextManager[None]:
    """Take from the user what writing needs: Redis answers NOPERM."""
    return server.set_to("ACL SETUSER default -@write", "ACL SETUSER default +@all")


def without_replicas(server: ValkeyServer) -> AbstractContextManager[None]:
    """Ask for a copy that there is not: Redis answers NOREPLICAS."""
    return server.set_to("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0")


@contextmanager
def unknown_to(server: ValkeyServer) -> Generator[None]:
    """Ask for a password that nobody here has, on new connections too: Redis answers NOAUTH."""
    with server.set_to("CONFIG SET requirepass secret", "AUTH secret\r\nCONFIG SET requirepass ''"):
        server.answer("AUTH secret\r\nCLIENT KILL TYPE normal")
        yield


def frozen(server: ValkeyServer) -> AbstractContextManager[None]:
    return server.frozen()


@contextmanager
def evicting(server: ValkeyServer) -> Generator[None]:
    """Have it make room for each write by forgetting whatever it holds."""
    with (
        server.set_to("CONFIG SET maxmemory-policy allkeys-lru", "CONFIG SET maxmemory-policy noeviction"),
        full(server),
    ):
        server.answer("SET room 1")
        yield


@contextmanager
def emptied(server: ValkeyServer) -> Generator[None]:
    server.flush()
    yield


TROUBLES = (full, read_only, forbidding, without_replicas, unknown_to, frozen)
LOSSES = (evicting, emptied)


@pytest.fixture
async def client(valkey_url: str) -> AsyncIterator[Any]:
    opened: Any = connect(valkey_url)
    yield opened
    await opened.aclose()


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_redis_that_takes_no_writes_counts_as_away(
    valkey_server: ValkeyServer, client: Any, trouble: Trouble
) -> None:
    presence = RedisPresence(client, away_after_seconds=0.0)
    await presence.look()
    assert not presence.is_away
    with trouble(valkey_server):
        await presence.look()
        assert presence.is_away
    async with asyncio.timeout(PATIENCE_SECONDS):
        while presence.is_away:
            await presence.look()


@pytest.mark.parametrize("trouble", [*TROUBLES, *LOSSES])
async def test_a_turn_is_stored_whole_and_shown_whole_where_it_runs(
    valkey_server: ValkeyServer, client: Any, valkey_url: str, trouble: Trouble
) -> None:
    gate = asyncio.Event()
    script: list[Any] = list(answer("Half ", "and ", "ha", "lf."))
    script.insert(2, gate)
    elsewhere_client: Any = connect(valkey_url)
    events = RedisEventLog(client, make_supervisor(), 600.0, patience_seconds=SILENCE_SECONDS)
    elsewhere = RedisEventLog(elsewhere_client, make_supervisor(), 600.0, patience_seconds=SILENCE_SECONDS)
    house = TurnHouse(chat_shell=ScriptedChatShell(script), events=events)  # pyright: ignore[reportArgumentType]
    there = TurnHouse(state=house.state, events=elsewhere)  # pyright: ignore[reportArgumentType]
    async with asyncio.timeout(PATIENCE_SECONDS), house.registry:
        running = await house.start()
        followers = [asyncio.create_task(each.all_events(running.response)) for each in (house, there)]
        while "Half" not in str(house.state.responses[running.response.id].body["output"]):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        with trouble(valkey_server):
            gate.set()
            ended = await running.wait_until_ended()
            seen = await asyncio.gather(*followers)
    assert at(ended.body, "output", 0, "content", 0, "text") == "Half and half."
    assert house.state.responses[ended.id] == ended
    here, elsewhere_seen = seen
    assert [event["sequence_number"] for event in here] == list(range(ended.last_event + 1))
    assert "".join(event["delta"] for event in here if event["type"].endswith("text.delta")) == "Half and half."
    deltas, deltas_elsewhere = ([event for event in each if "delta" in event] for each in seen)
    assert deltas_elsewhere == deltas[: len(deltas_elsewhere)]
    for told in seen:
        if told is elsewhere_seen and told[-1]["type"] == "error":
            assert told[-1]["code"] == told[-1]["error"]["code"] == "events_lost"
        else:
            assert (told[-1]["type"], told[-1]["response"]) == ("response.completed", ended.body)
    await events.delete_late()
    later = await there.all_events(ended)
    assert (later[-1]["type"], later[-1]["response"]) == ("response.completed", ended.body)
    await events.aclose()
    await elsewhere.aclose()
    await elsewhere_client.aclose()


async def test_a_new_turn_is_refused_where_its_first_event_cannot_be_written(
    valkey_server: ValkeyServer, client: Any
) -> None:
    log = RedisEventLog(client, make_supervisor(), 600.0, patience_seconds=0.0)
    house = TurnHouse(chat_shell=ScriptedChatShell(answer("Hello.")), events=log)  # pyright: ignore[reportArgumentType]
    with full(valkey_server):
        async with asyncio.timeout(PATIENCE_SECONDS), house.registry:
            ended = await house.ask()
    assert ended.status == "failed"
    assert at(ended.body, "error", "type") == Unavailable.__name__
    await log.aclose()


async def test_events_that_an_outage_kept_are_deleted_after_it(valkey_server: ValkeyServer, client: Any) -> None:
    log = RedisEventLog(client, make_supervisor(), 600.0)
    await log.append("resp_a", make_events(0, 1))
    valkey_server.kill()
    try:
        with pytest.raises(Unavailable):
            await log.drop("resp_a")
    finally:
        valkey_server.restart()
    await log.delete_late()
    assert not await log.exists("resp_a")
    assert await client.exists("ballast:dropped:resp_a")
    await log.aclose()
