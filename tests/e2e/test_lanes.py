"""Several models in one request: through both services, with models that fail and a replica that dies."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from tests.e2e.ballast_command import ballast, environ_of, lines_of
from tests.e2e.conftest import SMALL, Pairs
from tests.e2e.pair import Pair, PairOptions, start_pair, start_replica
from tests.e2e.prefixes import check_never_moves
from tests.e2e.turns import Body, bare_client, events_of, live_events, streamed_turn, turn
from tests.fakes.model_server import FakeModelControl, Fault, RecordedRequest, Reply
from tests.fakes.openai_types import check_chunk, check_joined_event, check_joined_response
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.services import Launch
from tests.servers.valkey import ValkeyServer

pytestmark = pytest.mark.combination

LEFT, RIGHT, NOBODY = "left-model", "right-model", "no-provider"
BOTH = [LEFT, RIGHT]
FAILURES = {
    "refused": (),
    "500": (Reply(status=500, repeat=True),),
    "cut": (Reply(text=("So ", "it"), fault=Fault.CUT, fault_after=1, repeat=True),),
    "empty": (Reply(repeat=True),),
    "time-out": (Reply(text=("So ",), fault=Fault.STALL, fault_after=1, repeat=True),),
}


@dataclass
class Cluster:
    """Two replicas over one PostgreSQL and one Valkey, and the provider of their two models."""

    survivor: Pair
    doomed: Pair


@pytest.fixture(scope="module")
def cluster(
    pairs: Pairs,
    launch_for_module: Launch,
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: PostgresServer,
    valkey_server: ValkeyServer,
) -> Cluster:
    directory = tmp_path_factory.mktemp("lanes")
    address = pairs.get(SMALL).model_url
    addresses = {LEFT: address, RIGHT: address, NOBODY: f"http://127.0.0.1:{free_port()}/v1"}
    models = directory / "models.yaml"
    models.write_text("\n".join(f"- {{name: {name}, base_url: '{url}'}}" for name, url in addresses.items()))
    backend = {
        "BACKEND_DATABASE_URL": postgres_server.url(postgres_server.new_database()),
        "BACKEND_REDIS_URL": valkey_server.url,
        "BACKEND_TURN_LEASE_SECONDS": "2",
    }
    chat_shell = {"CHAT_SHELL_MODELS_FILE": str(models), "CHAT_SHELL_MODEL_IDLE_TIMEOUT_SECONDS": "1"}
    options = PairOptions(backend=backend, chat_shell=chat_shell)
    survivor = replace(start_pair(launch_for_module, directory / "survivor", options), model_url=address)
    return Cluster(survivor, start_replica(launch_for_module, directory / "doomed", survivor))


@pytest.fixture
async def provider(cluster: Cluster) -> AsyncIterator[FakeModelControl]:
    async with cluster.survivor.fresh_model() as control:
        yield control


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[httpx2.AsyncClient]:
    async with bare_client(cluster.survivor, "ann") as opened:
        yield opened


async def says(provider: FakeModelControl, model: str, *replies: Reply) -> None:
    await provider.script(*replies, when=f'"model":"{model}"')


def said(response: Body, model: str) -> str:
    messages = [item for item in response["output"] if item["type"] == "message" and item["model"] == model]
    return "".join(part["text"] for item in messages for part in item["content"])


def asked_of(requests: list[RecordedRequest], model: str) -> list[RecordedRequest]:
    return [request for request in requests if request.json_body["model"] == model]


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("failure", FAILURES)
async def test_a_model_that_fails_leaves_the_other_alone(
    client: httpx2.AsyncClient, provider: FakeModelControl, failure: str, place: int
) -> None:
    broken = NOBODY if failure == "refused" else LEFT
    await says(provider, RIGHT, Reply(text=("All ", "is ", "well.")))
    if FAILURES[failure]:
        await says(provider, broken, *FAILURES[failure])
    models = [RIGHT, RIGHT]
    models[place] = broken
    events = await streamed_turn(client, "How is it?", models=models)
    response = events[-1]["response"]
    assert (events[-1]["type"], said(response, RIGHT)) == ("response.completed", "All is well.")
    lane, other = response["lanes"][place], response["lanes"][1 - place]
    assert (lane["model"], lane["status"], other["status"], other["error"]) == (broken, "failed", "completed", None)
    assert lane["error"]["message"]
    for event in events:
        check_joined_event(orjson.dumps(event))
    stored = (await client.get(f"/v1/responses/{response['id']}")).json()
    assert stored == response


async def test_each_lane_extends_its_own_prompt_over_ten_turns(
    client: httpx2.AsyncClient, provider: FakeModelControl
) -> None:
    response: Body = {}
    for number in range(10):
        for model in BOTH:
            await says(provider, model, Reply(text=(f"{model} says {number}.",)))
        before = {"previous_response_id": response["id"]} if response else {}
        response = await turn(client, f"Question {number}?", models=BOTH, **before)
        assert [said(response, model) for model in BOTH] == [f"{model} says {number}." for model in BOTH]
        check_joined_response(response)
    requests = await provider.requests()
    for model, other in (BOTH, BOTH[::-1]):
        own = asked_of(requests, model)
        assert len(own) == 10
        check_never_moves(own)
        assert f"{other} says".encode() not in own[-1].body
    for lane in response["lanes"]:
        shown = await client.get(f"/v1/responses/{lane['response_id']}/prompts")
        assert shown.status_code == 200, shown.text
    await says(provider, RIGHT, Reply(text=("Alone.",)))
    alone = await turn(client, "And you?", model=RIGHT, previous_response_id=response["id"])
    check_never_moves([*asked_of(requests, RIGHT), (await provider.requests())[-1]])
    assert alone["conversation"]["id"] == response["lanes"][1]["conversation_id"]


async def test_an_export_has_each_call_of_each_lane_once_and_extends(
    cluster: Cluster, provider: FakeModelControl, tmp_path: Path
) -> None:
    async with bare_client(cluster.survivor, "exporter") as client:
        response = await turn(client, "Is it exported?", models=BOTH)
        for number in range(2):
            response = await turn(client, f"Question {number}?", models=BOTH, previous_response_id=response["id"])
    environ = environ_of(cluster.survivor, "exporter", tmp_path)
    written = ballast(environ, "cache", "export")
    calls = lines_of(written.stdout)
    sent = [request.json_body for request in await provider.requests()]
    for model in BOTH:
        bodies = [(body["messages"], body["tools"]) for body in sent if body["model"] == model]
        assert [(call["messages"], call["tools"]) for call in calls if call["model"] == model] == bodies
    log = tmp_path / "calls.jsonl"
    log.write_text(written.stdout)
    checked = ballast(environ, "cache", "verify", str(log), "--json")
    assert lines_of(checked.stdout)[0]["calls"] == {"begins": 2, "extends": 4}


async def test_a_killed_replica_leaves_lanes_and_response_to_another_one(
    cluster: Cluster, provider: FakeModelControl
) -> None:
    await says(provider, LEFT, Reply(text=("So ", "it ", "is."), hold_after=0), Reply(text=("So ", "it ", "is.")))
    await says(provider, RIGHT, Reply(text=("All ", "is ", "well."), hold_after=2))
    seen: list[Body] = []

    def has_half() -> bool:
        return "".join(event.get("delta", "") for event in seen) == "All is "

    async with bare_client(cluster.doomed, "ann") as there, bare_client(cluster.survivor, "ann") as here:
        body = {"input": "Who dies?", "models": BOTH, "stream": True}
        async with there.stream("POST", "/v1/responses", json=body) as answer:
            with suppress(httpx2.TransportError):
                async for event in live_events(answer):
                    seen.append(event)
                    if has_half():
                        await provider.wait_held(2)
                        cluster.doomed.backend.kill()
        path = f"/v1/responses/{seen[0]['response']['id']}"
        after = seen[-1]["sequence_number"]
        rest = events_of((await here.get(f"{path}?stream=true&starting_after={after}")).text)
        stored = (await here.get(path)).json()
    events = [*seen, *rest]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    for event in events:
        check_joined_event(orjson.dumps(event))
    assert events[-1]["response"] == stored
    assert (stored["status"], said(stored, LEFT), said(stored, RIGHT)) == ("completed", "So it is.", "All is ")
    assert [lane["status"] for lane in stored["lanes"]] == ["completed", "incomplete"]
    first, again = asked_of(await provider.requests(), LEFT)
    assert first.body == again.body
    cluster.doomed.backend.start()
    await asyncio.to_thread(cluster.doomed.backend.wait_ready)


async def test_the_response_is_cancelled_from_another_replica(cluster: Cluster, provider: FakeModelControl) -> None:
    for model in BOTH:
        await says(provider, model, Reply(text=("So ", "it ", "is."), hold_after=2))
    async with bare_client(cluster.doomed, "ann") as there, bare_client(cluster.survivor, "ann") as here:
        begun = await turn(there, "Stop?", models=BOTH, background=True)
        await provider.wait_held(2)
        cancelled = (await here.post(f"/v1/responses/{begun['id']}/cancel")).json()
        assert cancelled["status"] == "cancelled"
        assert [lane["status"] for lane in cancelled["lanes"]] == ["cancelled", "cancelled"]
        assert (await here.delete(f"/v1/responses/{begun['id']}")).status_code == 200
        for lane in begun["lanes"]:
            assert (await here.get(f"/v1/responses/{lane['response_id']}")).status_code == 404


async def test_a_request_that_is_sent_again_under_its_key_gets_the_same_response(
    client: httpx2.AsyncClient, provider: FakeModelControl
) -> None:
    for model in BOTH:
        await says(provider, model, Reply(text=("Once.",)))
    body = {"input": "Once?", "models": BOTH}
    headers = {"Idempotency-Key": "two-models"}
    first, again = [(await client.post("/v1/responses", json=body, headers=headers)).json() for _ in range(2)]
    assert first == again
    assert len(await provider.requests()) == 2


async def test_the_official_client_reads_lanes(cluster: Cluster, provider: FakeModelControl) -> None:
    for model in BOTH:
        await says(provider, model, Reply(text=(f"I am {model}.",)))
    own: dict[str, Any] = {"models": BOTH}
    async with cluster.survivor.async_client("ann") as official:
        stream = await official.responses.create(input="Who?", extra_body=own, stream=True)
        events = [event async for event in stream]
    last = events[-1]
    assert last.type == "response.completed"
    owners = {item.to_dict()["model"]: item for item in last.response.output}
    assert set(owners) == set(BOTH)
    # Clients send back what they were given.
    items = [{"role": "user", "content": "Who?"}, *(item.to_dict() for item in last.response.output)]
    async with cluster.survivor.async_client("ann") as official:
        await says(provider, LEFT, Reply(text=("Both.",)))
        answer = await official.responses.create(model=LEFT, input=[*items, {"role": "user", "content": "Which?"}])  # pyright: ignore[reportArgumentType]
    assert answer.output_text == "Both."


async def test_chat_completions_take_one_model(client: httpx2.AsyncClient) -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}], "model": LEFT, "models": BOTH}
    answer = await client.post("/v1/chat/completions", json=body)
    assert (answer.status_code, answer.headers["x-ballast-ignored"]) == (200, "models")


async def test_choices_of_a_completion_are_calls_over_the_same_bytes(
    client: httpx2.AsyncClient, provider: FakeModelControl
) -> None:
    texts = [(f"{number} ", "it is.") for number in ("One", "Two", "Three")]
    await says(provider, LEFT, *(Reply(text=text, logprobs=True) for text in texts))
    messages: list[Body] = [{"role": "user", "content": "Which?"}]
    weighed: Body = {"logprobs": True, "top_logprobs": 2}
    options: Body = {"model": LEFT, "n": 3, "stream": True, "stream_options": {"include_usage": True}, **weighed}
    answer = await client.post("/v1/chat/completions", json={**options, "messages": messages})
    chunks = [check_chunk(frame) for frame in answer.content.removesuffix(b"data: [DONE]\n\n").split(b"data: ")[1:]]
    said = dict.fromkeys(range(3), "")
    for choice in [choice for chunk in chunks for choice in chunk["choices"]]:
        said[choice["index"]] += (text := choice["delta"].get("content") or "")
        told: Body = choice["logprobs"] or {"content": []}
        assert "".join(one["token"] for one in told["content"]) == text
    assert sorted(said.values()) == ["One it is.", "Three it is.", "Two it is."]
    requests = await provider.requests()
    assert [request.body for request in requests] == [requests[0].body] * 3
    lanes = (await client.get(f"/v1/responses/{chunks[0]['id']}")).json()["lanes"]
    assert chunks[-1]["usage"]["total_tokens"] == sum(lane["usage"]["total_tokens"] for lane in lanes)
    for index, text in said.items():
        resent = [*messages, {"role": "assistant", "content": text}, {"role": "user", "content": "Sure?"}]
        later = await client.post("/v1/chat/completions", json={"model": LEFT, "messages": resent})
        stored = (await client.get(f"/v1/responses/{later.json()['id']}")).json()
        assert stored["conversation"]["id"] == lanes[index]["conversation_id"]
        check_never_moves([requests[0], (await provider.requests())[-1]])
