"""Each alert fires by a fault of real processes, and none of those that the fault is not about fires before it."""

import asyncio
import itertools
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import asyncpg
import httpx2
import orjson
import pytest

from tests.alerts.firing import Watch, expressions
from tests.e2e.client.knowledge_bases import Base, new_base, searches
from tests.e2e.pair import Pair, PairOptions, start_model, start_pair, start_replica
from tests.e2e.stored_rows import write
from tests.e2e.turns import bare_client, live_events, new_conversation, next_delta, turn
from tests.fakes.model_server import FakeModelControl, Reply
from tests.servers.postgres import PostgresServer
from tests.servers.services import Launch, RunningService
from tests.servers.valkey import ValkeyServer

pytestmark = pytest.mark.whole

PASSAGE = "The Quillmark escalation begins with the duty engineer and ends with the keeper of the northern vault."
LEAKY = {
    "decision": "answer",
    "reason": "diagnosis",
    "summary": "The Quillmark reserve holds 48,200 litres.",
    "observations": list[str](),
    "risks": ["Nobody may be able to act in an emergency."],
    "recommended_actions": ["Train a deputy and rehearse the handover."],
    "confidence": "medium",
}
BODY_BYTES, BODIES_BYTES = 1_000_000, 4_200_000
RUNNING_SECONDS = (0.003, 0.01, 0.03)
SLOW_SECONDS = 11.0
REPLICAS = {"BACKEND_KEY_TURNS_PER_MINUTE": "1000"}


class Small:
    """A pair on SQLite with a secondary model, both models scripted, and what it shows."""

    def __init__(self, pair: Pair, second: RunningService, control: FakeModelControl, secondary: FakeModelControl):
        self.pair = pair
        self.second = second
        self.control = control
        self.secondary = secondary
        self.watch = Watch(backend=pair.backend_url, shell=pair.chat_shell_http_url)

    async def ask(self, user: str, **fields: Any) -> httpx2.Response:
        async with bare_client(self.pair, user) as client:
            return await client.post("/v1/responses", json={"input": "Where are we weak?", **fields})


@pytest.fixture(scope="module")
def running(launch_for_module: Launch, tmp_path_factory: pytest.TempPathFactory) -> tuple[Pair, RunningService, str]:
    directory = tmp_path_factory.mktemp("alerts")
    second, url = start_model(launch_for_module, directory / "second", "second-model")
    second.wait_ready()
    bodies = {"BACKEND_MAX_BODIES_BYTES": str(BODIES_BYTES), "BACKEND_MAX_BODY_BYTES": str(BODY_BYTES)}
    shell = {"CHAT_SHELL_SAFE_SUMMARY_MODEL": "second-model", "CHAT_SHELL_SAFE_SUMMARY_BASE_URL": url}
    pair = start_pair(launch_for_module, directory / "pair", PairOptions(backend=bodies, chat_shell=shell))
    return pair, second, url


@pytest.fixture
async def small(running: tuple[Pair, RunningService, str]) -> AsyncIterator[Small]:
    pair, second, url = running
    async with pair.control() as control, FakeModelControl(url) as secondary:
        await control.reset()
        await secondary.reset()
        yield Small(pair, second, control, secondary)


async def test_a_model_that_fails(small: Small) -> None:
    alerts = "BallastTurnsFail", "BallastModelFails"
    assert (await small.ask("ann")).status_code == 200
    await small.control.script(Reply(status=401, repeat=True))
    await small.ask("ann")
    await small.watch.scrape()
    await small.ask("ann")
    await small.watch.until_firing(*alerts)


async def test_a_slow_model(small: Small) -> None:
    await small.ask("ann")
    await small.watch.scrape()
    await small.watch.scrape()
    assert small.watch.is_quiet("BallastFirstDeltaSlow")
    await small.control.script(Reply(text=("At last.",), first_pause_seconds=SLOW_SECONDS))
    await small.ask("ann")
    await small.watch.until_firing("BallastFirstDeltaSlow")


async def test_a_prompt_that_moves(small: Small) -> None:
    async with bare_client(small.pair, "ann") as client:
        conversation = await new_conversation(client)
        await turn(client, "One?", conversation=conversation)
        await small.watch.scrape()
        await small.watch.scrape()
        assert small.watch.is_quiet("BallastPromptDrift")
        said = orjson.dumps({"role": "user", "content": "Something else?"}).decode()
        statement = "UPDATE log_entry SET content = :said WHERE conversation_id = :id AND content LIKE '%One?%'"
        await write(small.pair, statement, said=said, id=conversation)
        await turn(client, "Two?", conversation=conversation)
    await small.watch.until_firing("BallastPromptDrift")


async def test_a_process_without_cpu(small: Small) -> None:
    await small.watch.scrape()
    async with asyncio.TaskGroup() as group:
        throttling = group.create_task(throttled(small.pair.backend))
        await small.watch.until_firing("BallastLoopHeld")
        throttling.cancel()


async def throttled(service: RunningService) -> None:
    """Let a service run and stop as a container that has used up its share of each period, until cancelled."""
    for seconds in itertools.cycle(RUNNING_SECONDS):
        service.send(signal.SIGSTOP)
        try:
            await asyncio.sleep(0.3)
        finally:
            service.send(signal.SIGCONT)
        await asyncio.sleep(seconds)


async def test_bodies_that_fill_all_room(small: Small) -> None:
    url = httpx2.URL(small.pair.backend_url)
    await small.watch.scrape()
    assert small.watch.is_quiet("BallastBodiesFillUp")
    async with AsyncExitStack() as stack:
        for user in ("ann", "ben", "cem", "dan"):
            head = f"POST /v1/responses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {small.pair.key(user)}\r\n"
            _, writer = await asyncio.open_connection(url.host, url.port)
            stack.callback(writer.close)
            writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {BODY_BYTES}\r\n\r\n".encode())
            writer.write(b" " * (BODY_BYTES - 1))
        await small.watch.until_firing("BallastBodiesFillUp")


def vault(small: Small, analyst: str) -> Base:
    return new_base(small.pair, f"vault of {analyst}", {"vault.md": PASSAGE}, **{analyst: "restricted_analyst"})


async def test_a_gate_that_rejects(small: Small) -> None:
    base = vault(small, "gil")
    leaky = Reply(text=(orjson.dumps(LEAKY).decode(),), repeat=True)
    await small.secondary.script(leaky)
    await small.watch.scrape()
    for number in range(2):
        await small.control.script(searches(f"escalation of the vault {number}"), Reply(text=("Nothing.",)))
        await small.ask("gil", tools=[base.tool])
        await small.watch.scrape()
    await small.watch.until_firing("BallastGateRejects")


async def test_answers_that_are_cut(small: Small) -> None:
    base = vault(small, "cat")
    await small.watch.scrape()
    for _ in range(6):
        await small.control.script(Reply(text=(PASSAGE, " ", PASSAGE)))
        await small.ask("cat", tools=[base.tool])
    await small.watch.until_firing("BallastAnswersCut")


async def test_a_secondary_model_that_is_away(small: Small) -> None:
    base = vault(small, "sue")
    await small.secondary.script(Reply(status=503, repeat=True))
    for number in range(2):
        await small.control.script(searches(f"keeper of the vault {number}"), Reply(text=("Nothing.",)))
        await small.ask("sue", tools=[base.tool])
        await small.watch.scrape()
    await small.watch.until_firing("BallastSafeSummariesFail")


@pytest.fixture(scope="module")
def replicas(
    postgres_server: PostgresServer,
    valkey_server: ValkeyServer,
    launch_for_module: Launch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Pair, str]]:
    """A pair on PostgreSQL and Valkey, and the name of its database."""
    name = postgres_server.new_database()
    settings = {"BACKEND_DATABASE_URL": postgres_server.url(name), "BACKEND_REDIS_URL": valkey_server.url, **REPLICAS}
    pair = start_pair(launch_for_module, tmp_path_factory.mktemp("replicas"), PairOptions(backend=settings))
    yield pair, name
    postgres_server.drop_database(name)


async def test_a_replica_that_dies(replicas: tuple[Pair, str], launch: Launch, tmp_path: Path) -> None:
    pair, _ = replicas
    mortal = start_replica(launch, tmp_path / "mortal", pair)
    watch = Watch(backend=pair.backend_url, mortal=mortal.backend_url, shell=pair.chat_shell_http_url)
    await watch.scrape()
    await watch.scrape()
    assert watch.is_quiet("BallastTurnsTakenOver")
    async with pair.control() as control, bare_client(mortal, "ann") as client:
        await control.reset()
        await control.script(Reply(text=("So ", "it ", "is."), hold_after=2))
        async with client.stream("POST", "/v1/responses", json={"input": "?", "stream": True}) as answer:
            await next_delta(live_events(answer))
            mortal.backend.kill()
        await control.release()
    await watch.until_firing("BallastTurnsTakenOver")


async def test_connections_that_are_used_up(replicas: tuple[Pair, str], postgres_server: PostgresServer) -> None:
    pair, name = replicas
    watch = Watch(backend=pair.backend_url)
    await watch.scrape()
    assert watch.is_quiet("BallastDatabaseConnectionsUsedUp")
    connection: Any = await cast(Any, asyncpg).connect(postgres_server.url(name, driver=""))
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(bare_client(pair, "ann"))
        await connection.execute("BEGIN; LOCK TABLE conversation IN ACCESS EXCLUSIVE MODE")
        group = await stack.enter_async_context(asyncio.TaskGroup())
        asking = [group.create_task(client.get("/v1/conversations/conv_x")) for _ in range(80)]
        await watch.until_firing("BallastDatabaseConnectionsUsedUp")
        await connection.close()
    assert {asked.result().status_code for asked in asking} <= {404, 429, 503}


async def test_a_redis_that_is_silent_and_then_away(replicas: tuple[Pair, str], valkey_server: ValkeyServer) -> None:
    pair, _ = replicas
    watch = Watch(backend=pair.backend_url, shell=pair.chat_shell_http_url)
    async with bare_client(pair, "ann") as client:
        await turn(client, "Counted?")
        await watch.scrape()
        await watch.scrape()
        assert watch.is_quiet("BallastLimitsUncounted", "BallastEventStoreAway", "BallastServerErrors")
        with valkey_server.frozen():
            await client.post("/v1/responses", json={"input": "Uncounted?"})
            await watch.until_firing("BallastLimitsUncounted")
        valkey_server.kill()
        for _ in range(2):
            await client.post("/v1/responses", json={"input": "Refused?"})
            await watch.scrape()
        await watch.until_firing("BallastEventStoreAway", "BallastServerErrors")
        valkey_server.start()


async def test_a_database_that_is_away(replicas: tuple[Pair, str], postgres_server: PostgresServer) -> None:
    pair, _ = replicas
    watch = Watch(backend=pair.backend_url)
    await watch.scrape()
    postgres_server.kill()
    await watch.until_firing("BallastBackgroundWorkFails")
    postgres_server.start()


def test_each_alert_has_its_fault() -> None:
    faults = Path(__file__).read_text(encoding="utf-8")
    assert [alert for alert in expressions() if f'"{alert}"' not in faults] == []
