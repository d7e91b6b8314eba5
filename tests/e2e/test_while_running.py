"""What is asked for while a turn runs, on two replicas over one PostgreSQL and one Valkey, one of which is killed."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import httpx2
import pytest

from tests.e2e.pair import Pair, PairOptions, start_pair, start_replica
from tests.e2e.prefixes import check_never_moves
from tests.e2e.turns import (
    Body,
    bare_client,
    events_of,
    items_of,
    live_events,
    messages_in,
    new_conversation,
    next_delta,
    text_of,
)
from tests.fakes.model_server import FakeModelControl, Reply, ScriptedCall
from tests.patience import PATIENCE_SECONDS
from tests.servers.postgres import PostgresServer
from tests.servers.services import Launch
from tests.servers.valkey import ValkeyServer

pytestmark = pytest.mark.combination

HALF = Reply(text=("So ", "it ", "is."), hold_after=2)
TOOL = Reply(tool_calls=(ScriptedCall(name="no_such_tool", call_id="call_1"),))


@dataclass
class Cluster:
    """Two replicas; the doomed one is started again where a test has killed it."""

    survivor: Pair
    doomed: Pair


@pytest.fixture(scope="module")
def cluster(
    launch_for_module: Launch,
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: PostgresServer,
    valkey_server: ValkeyServer,
) -> Iterator[Cluster]:
    name = postgres_server.new_database()
    shared = {
        "BACKEND_DATABASE_URL": postgres_server.url(name),
        "BACKEND_REDIS_URL": valkey_server.url,
        "BACKEND_TURN_LEASE_SECONDS": "2",
    }
    directory = tmp_path_factory.mktemp("while_running")
    first = start_pair(launch_for_module, directory / "first", PairOptions(backend=shared))
    yield Cluster(first, start_replica(launch_for_module, directory / "second", first))
    postgres_server.drop_database(name)


@pytest.fixture
async def model(cluster: Cluster) -> AsyncIterator[FakeModelControl]:
    if cluster.doomed.backend.exit_code is not None:
        cluster.doomed.backend.start()
        await asyncio.to_thread(cluster.doomed.backend.wait_ready)
    async with cluster.survivor.fresh_model() as control:
        yield control


async def ask(client: httpx2.AsyncClient, text: str, conversation: str, **fields: object) -> httpx2.Response:
    answer = await client.post("/v1/responses", json={"input": text, "conversation": conversation, **fields})
    assert answer.status_code == 200, answer.text
    return answer


async def until_ended(client: httpx2.AsyncClient, response_id: str) -> Body:
    async with asyncio.timeout(PATIENCE_SECONDS):
        followed = await client.get(f"/v1/responses/{response_id}?stream=true")
    assert followed.status_code == 200
    return (await client.get(f"/v1/responses/{response_id}")).json()


@pytest.mark.parametrize("is_killed", [False, True])
async def test_queued_turns_run_in_order_on_any_replica(
    cluster: Cluster, model: FakeModelControl, is_killed: bool
) -> None:
    """Acknowledged by a replica that is killed then, they run on the other one."""
    await model.script(HALF, when="First?")
    for text in ("Second?", "Third?"):
        await model.script(Reply(text=(f"To {text}",)), when=text)
    async with bare_client(cluster.survivor, "ann") as here, bare_client(cluster.doomed, "ann") as there:
        conversation = await new_conversation(here)
        running = (await ask(here, "First?", conversation, background=True)).json()
        second, third = [
            (await ask(there, text, conversation, background=True, if_running="queue")).json()
            for text in ("Second?", "Third?")
        ]
        assert (second["status"], second["id"] == running["id"]) == ("queued", False)
        assert (await here.get(f"/v1/responses/{second['id']}")).json()["status"] == "queued"
        following = asyncio.create_task(here.get(f"/v1/responses/{third['id']}?stream=true"))
        if is_killed:
            cluster.doomed.backend.kill()
        await here.post(f"/v1/responses/{running['id']}/cancel")
        ended = [await until_ended(here, each["id"]) for each in (second, third)]
        assert [text_of(each) for each in ended] == ["To Second?", "To Third?"]
        followed = events_of((await following).text)
        assert (followed[0]["response"]["id"], followed[-1]["type"]) == (third["id"], "response.completed")
        shown = [item["content"][0]["text"] for item in await items_of(here, conversation)]
    assert shown == ["First?", "So it ", "Second?", "To Second?", "Third?", "To Third?"]
    check_never_moves(await model.requests())


async def test_a_turn_that_cancels_keeps_what_was_said_and_comes_next(
    cluster: Cluster, model: FakeModelControl
) -> None:
    await model.script(HALF, when="First?")
    await model.script(Reply(text=("Patient.",)), when="Second?")
    await model.script(Reply(text=("Urgent.",)), when="Third?")
    async with bare_client(cluster.survivor, "ann") as here, bare_client(cluster.doomed, "ann") as there:
        conversation = await new_conversation(here)
        first = {"input": "First?", "conversation": conversation, "stream": True}
        async with here.stream("POST", "/v1/responses", json=first) as stream:
            events = live_events(stream)
            created = await anext(events)
            assert (await next_delta(events)).startswith("So ")
            patient = (await ask(there, "Second?", conversation, background=True, if_running="queue")).json()
            urgent = (await ask(there, "Third?", conversation, if_running="cancel")).json()
            *_, last = [event async for event in events]
        assert (last["type"], last["response"]["status"]) == ("response.incomplete", "cancelled")
        assert text_of(urgent) == "Urgent."
        assert text_of(await until_ended(here, patient["id"])) == "Patient."
        stopped = (await here.get(f"/v1/responses/{created['response']['id']}")).json()
        assert text_of(stopped).startswith("So ")


@pytest.mark.parametrize("is_killed", [False, True])
async def test_a_message_enters_a_running_turn_from_another_replica(
    cluster: Cluster, model: FakeModelControl, is_killed: bool
) -> None:
    """It enters exactly once, also where the turn is taken over after the message was acknowledged."""
    await model.script(
        TOOL, Reply(text=("x",), hold_after=0), Reply(text=("One.",)), Reply(text=("Two.",)), when="First?"
    )
    async with bare_client(cluster.survivor, "ann") as here, bare_client(cluster.doomed, "ann") as there:
        conversation = await new_conversation(here)
        running = (await ask(there, "First?", conversation, background=True)).json()
        await model.wait_requests(2)
        await model.wait_held()
        answer = await ask(here, "Also?", conversation, background=True, if_running="steer")
        assert (answer.json()["id"], answer.json()["status"]) == (running["id"], "in_progress")
        steer_id = answer.headers["X-Ballast-Steer-Id"]
        assert (await here.get(f"/v1/responses/{steer_id}")).json()["status"] == "queued"
        if is_killed:
            cluster.doomed.backend.kill()
        else:
            await model.release()
        ended = await until_ended(here, running["id"])
        assert (await here.get(f"/v1/responses/{steer_id}")).json()["id"] == running["id"]
        shown = [item["content"][0]["text"] for item in await items_of(here, conversation) if item["type"] == "message"]
        requests = await model.requests()
        said = [message["content"] for message in messages_in(requests[-1]) if message["role"] == "user"]
    assert ended["status"] == "completed"
    assert [text.split("\n\n")[0] for text in said] == ["First?", "Also?"]
    assert shown.count("Also?") == 1
    # The call that died with its process was sent again, with the same bytes.
    check_never_moves([one for place, one in enumerate(requests) if place == 0 or one.body != requests[place - 1].body])
