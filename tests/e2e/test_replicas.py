"""Two replicas that start together, and requests that reach both under one Idempotency-Key."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

import httpx2
import pytest

from tests.e2e.half_turns import HALF
from tests.e2e.pair import ADMIN_KEY, Pair, PairOptions, start_pair
from tests.e2e.turns import Body, answer_to_head, bare_client, events_of, live_events, next_delta, text_of
from tests.fakes.model_server import FakeModelControl, Reply
from tests.patience import PATIENCE_SECONDS
from tests.servers.fixtures import launching
from tests.servers.forks import ForkServers
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.services import Launch, RunningService
from tests.servers.valkey import ValkeyServer

pytestmark = pytest.mark.combination

KEY = {"Idempotency-Key": "order-17"}
STREAM_ROUNDS = 5
NEW_ADMIN_KEY = "another-admin-key-of-the-tests"


@pytest.fixture(scope="module")
def replicas(
    postgres_server: PostgresServer,
    valkey_server: ValkeyServer,
    tmp_path_factory: pytest.TempPathFactory,
    forks: ForkServers,
) -> Iterator[tuple[Pair, Pair]]:
    """A pair on PostgreSQL and Valkey, and a second backend that starts beside the first one on the empty database."""
    name = postgres_server.new_database()
    shared = {"BACKEND_DATABASE_URL": postgres_server.url(name), "BACKEND_REDIS_URL": valkey_server.url}
    directory = tmp_path_factory.mktemp("replicas")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with launching(directory, forks) as launch:
        seconds: list[RunningService] = []

        def launch_beside(module: str, *arguments: str, settings: dict[str, str], **rest: object) -> RunningService:
            """Start a second backend in the moment in which the first one starts."""
            if module == "backend":
                place = directory / "second"
                place.mkdir()
                own = {**settings, "BACKEND_PORT": str(port)}
                seconds.append(launch(module, settings=own, directory=place, ready_url=f"{url}/readyz"))
            return launch(module, *arguments, settings=settings, **rest)

        first = start_pair(launch_beside, directory / "first", PairOptions(over_http=True, backend=shared))
        seconds[0].wait_ready()
        yield first, replace(first, backend=seconds[0], backend_url=url)
    postgres_server.drop_database(name)


@pytest.fixture
async def model(replicas: tuple[Pair, Pair]) -> AsyncIterator[FakeModelControl]:
    async with replicas[0].fresh_model() as control:
        yield control


def test_two_replicas_start_together_on_an_empty_database(replicas: tuple[Pair, Pair]) -> None:
    """Both know the one admin key, and none of them has met an error on the way."""
    for replica in replicas:
        with replica.http(ADMIN_KEY) as admin:
            listed = admin.get("/v1/api_keys").json()["data"]
        assert [key["origin"] for key in listed].count("setting") == 1
        assert '"level": "error"' not in replica.backend.log()


def key_of(replica: Pair, name: str, **limits: int) -> str:
    with replica.http(ADMIN_KEY) as admin:
        made = admin.post("/v1/api_keys", json={"user_id": name, "role": "user", **limits})
        return str(made.raise_for_status().json()["key"])


async def test_a_key_at_its_limit_is_refused_unread_by_both_replicas_but_for_what_was_answered(
    replicas: tuple[Pair, Pair], model: FakeModelControl
) -> None:
    """A body is announced and never sent: who answers has not read it."""
    await model.script(Reply(text=("Once.",)))
    key = key_of(replicas[0], "refused", turns_per_minute=1)
    body = {"input": "Hi", "stream": False}
    with replicas[0].http(key) as here, replicas[1].http(key) as there:
        first = here.post("/v1/responses", json=body, headers=KEY)
        assert first.status_code == 200
        refused = there.post("/v1/responses", json=body)
        again = there.post("/v1/responses", json=body, headers=KEY)
    assert (refused.status_code, again.status_code, again.json()["id"]) == (429, 200, first.json()["id"])
    for replica in replicas:
        for header in ([], ["Idempotency-Key: order-18"]):
            async with asyncio.timeout(PATIENCE_SECONDS):
                head, _ = await answer_to_head(replica, key, *header)
            assert head[0].split()[1] == "429"


async def test_a_new_key_works_on_the_other_replica_while_that_is_flooded_with_wrong_ones(
    replicas: tuple[Pair, Pair], model: FakeModelControl
) -> None:
    there = replicas[1]
    async with httpx2.AsyncClient(
        base_url=there.backend_url, timeout=PATIENCE_SECONDS, trust_env=False, verify=False
    ) as client:

        async def ask(key: str) -> int:
            return (await client.get("/v1/models", headers={"Authorization": f"Bearer {key}"})).status_code

        has_begun, may_end = asyncio.Event(), asyncio.Event()

        async def flood() -> None:
            while not may_end.is_set():
                assert await ask(f"sk-ballast-{token_hex()}") == 401
                has_begun.set()

        async with asyncio.TaskGroup() as group:
            for _ in range(64):
                group.create_task(flood())
            await has_begun.wait()
            key = await asyncio.to_thread(key_of, replicas[0], "new")
            assert await ask(key) == 200
            may_end.set()


async def test_twenty_equal_requests_to_two_replicas_are_one_turn(
    replicas: tuple[Pair, Pair], model: FakeModelControl
) -> None:
    await model.script(Reply(text=("Once.",), first_pause_seconds=0.3))
    body = {"input": "Twenty times", "stream": False}
    async with bare_client(replicas[0], "racer") as here, bare_client(replicas[1], "racer") as there:
        answers = await asyncio.gather(
            *(client.post("/v1/responses", json=body, headers=KEY) for client in (here, there) for _ in range(10))
        )
    assert [answer.status_code for answer in answers] == [200] * 20
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotent-replayed" in answer.headers for answer in answers) == 19
    assert len(await model.requests()) == 1


async def test_streams_that_two_replicas_are_asked_for_at_once_all_reach_the_end(
    replicas: tuple[Pair, Pair], model: FakeModelControl
) -> None:
    await model.script(*(Reply(text=("Once.",)) for _ in range(STREAM_ROUNDS)))
    body = {"input": "Twenty streams", "stream": True}
    async with bare_client(replicas[0], "racer") as here, bare_client(replicas[1], "racer") as there:
        for number in range(STREAM_ROUNDS):
            key = {"Idempotency-Key": f"stream-{number}"}
            answers = await asyncio.gather(
                *(client.post("/v1/responses", json=body, headers=key) for client in (here, there) for _ in range(10))
            )
            assert {events_of(answer.text)[-1]["type"] for answer in answers} == {"response.completed"}
            assert len({answer.content for answer in answers}) == 1
    assert len(await model.requests()) == STREAM_ROUNDS


async def test_a_running_turn_is_followed_from_the_other_replica(
    replicas: tuple[Pair, Pair], model: FakeModelControl
) -> None:
    await model.script(HALF)
    body = {"input": "Follow me"}
    async with bare_client(replicas[0], "follower") as here, bare_client(replicas[1], "follower") as there:
        async with here.stream("POST", "/v1/responses", json={**body, "stream": True}, headers=KEY) as first:
            events = live_events(first)
            created = await anext(events)
            await next_delta(events)
            waiting = asyncio.create_task(there.post("/v1/responses", json=body, headers=KEY))
            async with there.stream("POST", "/v1/responses", json={**body, "stream": True}, headers=KEY) as second:
                followed = live_events(second)
                assert await anext(followed) == created
                assert await next_delta(followed)
                other = await there.post("/v1/responses", json={"input": "Another"}, headers=KEY)
                assert (other.status_code, other.json()["error"]["param"]) == (422, "Idempotency-Key")
                await model.release()
                last = [event async for event in events][-1]
                assert [event async for event in followed][-1] == last
        whole = await waiting
    assert whole.json() == last["response"]
    assert text_of(last["response"]) == "Half an answer"
    assert len(await model.requests()) == 1


async def test_a_key_outlives_the_process_that_took_it(replicas: tuple[Pair, Pair], model: FakeModelControl) -> None:
    """The turn of the killed replica is not begun again: the request that is sent again gets its end."""
    await model.script(HALF, Reply(text=("Never.",), repeat=True))
    here, there = replicas
    body = {"input": "Survive", "stream": True}
    async with bare_client(here, "heir") as client, bare_client(there, "heir") as other:
        async with client.stream("POST", "/v1/responses", json=body, headers=KEY) as first:
            events = live_events(first)
            created = await anext(events)
            await next_delta(events)
            here.backend.kill()
            with pytest.raises(httpx2.HTTPError):
                [event async for event in events]
        answer = await other.post("/v1/responses", json=body, headers=KEY)
    here.backend.start()
    followed: list[Body] = events_of(answer.text, is_whole=False)
    last = followed[-1]["response"]
    assert last["id"] == created["response"]["id"]
    assert last["status"] != "in_progress"
    await asyncio.to_thread(here.backend.wait_ready)


def test_a_changed_admin_key_revokes_the_one_before(
    replicas: tuple[Pair, Pair], launch: Launch, tmp_path: Path
) -> None:
    """At the start of the first replica that has it, on every replica, and back again."""
    here, there = replicas
    spec = there.backend.spec
    port = free_port()
    ready = f"http://127.0.0.1:{port}/readyz"
    settings = {**spec.environment, "BACKEND_PORT": str(port), "BACKEND_ADMIN_KEY": NEW_ADMIN_KEY}
    changed = launch("backend", settings=settings, directory=tmp_path, ready_url=ready)
    changed.wait_ready()
    for key, status in ((ADMIN_KEY, 401), (NEW_ADMIN_KEY, 200)):
        for url in (here.backend_url, there.backend_url, f"http://127.0.0.1:{port}"):
            answer = httpx2.get(f"{url}/v1/api_keys", headers={"Authorization": f"Bearer {key}"}, trust_env=False)
            assert answer.status_code == status
    there.backend.stop()
    there.backend.start()
    there.backend.wait_ready()
    for key, status in ((ADMIN_KEY, 200), (NEW_ADMIN_KEY, 401)):
        with here.http(key) as admin:
            assert admin.get("/v1/api_keys").status_code == status
