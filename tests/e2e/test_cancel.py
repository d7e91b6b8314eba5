"""Stopping a turn, leaving a stream, and coming back to it, from any replica."""

import asyncio
import time
from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.e2e.conftest import LARGE, Pairs
from tests.e2e.pair import Pair, start_replica
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
    turn,
)
from tests.fakes.model_server import FakeModelControl, Fault, Reply
from tests.servers.services import Launch

ENDLESS = Reply(text=("on and ",), fault=Fault.ENDLESS)


async def begun(client: httpx2.AsyncClient, conversation: str, **fields: object) -> Body:
    """Start a turn in the background and return its response."""
    return await turn(client, "Go on", conversation=conversation, background=True, **fields)


async def cancelled(client: httpx2.AsyncClient, response_id: str) -> Body:
    answer = await client.post(f"/v1/responses/{response_id}/cancel")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_cancelling_an_endless_stream_keeps_what_was_said_once(pair: Pair, model: FakeModelControl) -> None:
    await model.script(ENDLESS)
    async with bare_client(pair, "cancel") as client, bare_client(pair, "cancel") as other:
        conversation = await new_conversation(client)
        body = {"input": "Go on", "stream": True, "conversation": conversation}
        async with client.stream("POST", "/v1/responses", json=body) as answer:
            events = live_events(answer)
            created = await anext(events)
            said = [await next_delta(events) for _ in range(3)]
            stopping = asyncio.create_task(cancelled(other, created["response"]["id"]))
            last = created
            async for event in events:
                said += [event["delta"]] if event["type"] == "response.output_text.delta" else []
                last = event
        response = await stopping
        assert await model.wait_closed()
        await model.script(Reply(text=("Fine.",)))
        await turn(client, "Stop.", conversation=conversation)
        items = await items_of(client, conversation)
        stored = (await client.get(f"/v1/responses/{response['id']}")).json()
        again = await cancelled(client, response["id"])

    partial = "".join(said)
    assert last["type"] == "response.incomplete"
    assert (response["status"], response["incomplete_details"], response["error"]) == ("cancelled", None, None)
    assert last["response"] == response == stored == again
    assert text_of(response) == partial
    assert [item["status"] for item in response["output"]] == ["incomplete"]
    assert [(item["role"], item["content"][0]["text"]) for item in items] == [
        ("user", "Go on"),
        ("assistant", partial),
        ("user", "Stop."),
        ("assistant", "Fine."),
    ]
    _, next_request = await model.requests()
    assert [message["role"] for message in messages_in(next_request)] == ["system", "user", "assistant", "user"]
    assert messages_in(next_request)[2]["content"] == partial


async def test_cancelling_closes_the_providers_connection(pair: Pair, model: FakeModelControl) -> None:
    """Deltas come without an end: nothing else would close it."""
    async with bare_client(pair, "cancel") as client, bare_client(pair, "cancel") as other:
        await model.script(ENDLESS)
        body = {"input": "Go on", "stream": True, "conversation": await new_conversation(client)}
        async with client.stream("POST", "/v1/responses", json=body) as answer:
            events = live_events(answer)
            created = await anext(events)
            await next_delta(events)
            stopping = asyncio.create_task(cancelled(other, created["response"]["id"]))
            await model.wait_closed()
            await stopping


async def test_cancelling_before_anything_was_said_leaves_a_void_turn(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(text=("never said",), hold_after=0), Reply(text=("Fine.",)))
    async with bare_client(pair, "cancel") as client:
        conversation = await new_conversation(client)
        started = await begun(client, conversation)
        await model.wait_held()
        response = await cancelled(client, started["id"])
        await model.wait_closed()
        await turn(client, "Again", conversation=conversation)
    assert (response["status"], response["output"]) == ("cancelled", [])
    _, next_request = await model.requests()
    assert [message["role"] for message in messages_in(next_request)] == ["system", "user"]
    assert messages_in(next_request)[-1]["content"].startswith("Again\n\n<time>")


async def test_a_finished_turn_cannot_be_cancelled_and_says_so_by_its_status(
    small_pair: Pair, small_model: FakeModelControl
) -> None:
    async with bare_client(small_pair, "cancel") as client:
        response = await turn(client, "Hi")
        assert await cancelled(client, response["id"]) == response
        assert response["status"] == "completed"


async def test_a_client_that_leaves_changes_nothing(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(text=("One ", "two ", "three."), hold_after=1))
    async with bare_client(pair, "leaver") as client:
        body = {"input": "Count", "stream": True}
        async with client.stream("POST", "/v1/responses", json=body) as answer:
            events = live_events(answer)
            created = await anext(events)
            assert await next_delta(events) == "One "
        await model.release()
        path = f"/v1/responses/{created['response']['id']}"
        replay = events_of((await client.get(f"{path}?stream=true")).text)
        rest = events_of((await client.get(f"{path}?stream=true&starting_after=4")).text)
        response = (await client.get(path)).json()
    assert (response["status"], text_of(response)) == ("completed", "One two three.")
    assert replay[0] == created
    assert replay[-1] == {**replay[-1], "type": "response.completed", "response": response}
    assert rest == replay[5:]


CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
CLOSED: list[tuple[str, Body]] = [
    (CHAT, {"messages": [{"role": "user", "content": "Count"}], "stream": True}),
    (CHAT, {"messages": [{"role": "user", "content": "Count"}], "store": False}),
    (RESPONSES, {"input": "Count", "stream": True, "store": False}),
    (RESPONSES, {"input": "Count", "stream": True, "stream_options": {"on_disconnect": "cancel"}}),
]


async def close_in_silence(client: httpx2.AsyncClient, model: FakeModelControl, path: str, body: Body) -> float:
    """Ask for a turn and close the connection while the model says nothing; return how long its call lived on."""
    await model.reset()
    await model.script(Reply(text=("One ", "two."), hold_after=1))
    asking = asyncio.create_task(client.post(path, json=body))
    await model.wait_held()
    closed_at = time.monotonic()
    asking.cancel()
    await asyncio.wait([asking])
    return await model.wait_closed() - closed_at


async def test_closing_the_connection_ends_the_providers_call(pair: Pair, model: FakeModelControl) -> None:
    for path, body in CLOSED:
        async with bare_client(pair, "closer") as client:
            await close_in_silence(client, model, path, body)


@pytest.fixture(scope="module")
def replica(pairs: Pairs, launch_for_module: Launch, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The large pair through a second backend, on the same PostgreSQL, Valkey and chat_shell."""
    return start_replica(launch_for_module, tmp_path_factory.mktemp("replica"), pairs.get(LARGE))


@pytest.fixture
async def shared_model(replica: Pair) -> AsyncIterator[FakeModelControl]:
    async with replica.fresh_model() as control:
        yield control


async def test_another_replica_follows_and_cancels(pairs: Pairs, replica: Pair, shared_model: FakeModelControl) -> None:
    await shared_model.script(Reply(text=("one ", "two ", "three ", "four"), hold_after=2))
    async with bare_client(pairs.get(LARGE), "twin") as here, bare_client(replica, "twin") as there:
        conversation = await new_conversation(here)
        started = await begun(here, conversation)
        await shared_model.wait_held()
        path = f"/v1/responses/{started['id']}"
        async with there.stream("GET", f"{path}?stream=true") as answer:
            first = [event async for event in until_text(live_events(answer), "one two ")]
        after = first[-2]["sequence_number"]
        async with there.stream("GET", f"{path}?stream=true&starting_after={after}") as answer:
            rest = live_events(answer)
            assert await anext(rest) == first[-1]
            response = await cancelled(there, started["id"])
            tail = [event async for event in rest]
        await shared_model.wait_closed()
        stored = (await here.get(path)).json()
        replay = events_of((await here.get(f"{path}?stream=true")).text)
    assert (response["status"], text_of(response)) == ("cancelled", "one two ")
    assert response == stored == tail[-1]["response"]
    assert replay == [*first, *tail]


async def test_another_replica_cancels_what_is_not_stored(
    pairs: Pairs, replica: Pair, shared_model: FakeModelControl
) -> None:
    await shared_model.script(Reply(text=("one ", "two"), hold_after=1))
    async with (
        bare_client(pairs.get(LARGE), "twin") as here,
        bare_client(replica, "twin") as there,
        bare_client(replica, "stranger") as stranger,
    ):
        body = {"input": "Count", "store": False, "stream": True}
        async with here.stream("POST", "/v1/responses", json=body) as answer:
            events = live_events(answer)
            created = await anext(events)
            assert await next_delta(events) == "one "
            path = f"/v1/responses/{created['response']['id']}"
            assert (await stranger.post(f"{path}/cancel")).status_code == 404
            assert (await cancelled(there, created["response"]["id"]))["status"] == "cancelled"
            rest = [event async for event in events]
        await shared_model.wait_closed()
        assert (rest[-1]["type"], rest[-1]["response"]["status"]) == ("response.incomplete", "cancelled")
        assert text_of(rest[-1]["response"]) == "one "
        assert (await there.get(path)).status_code == 404


async def test_a_conversation_goes_on_at_the_other_replica(
    pairs: Pairs, replica: Pair, shared_model: FakeModelControl
) -> None:
    async with bare_client(pairs.get(LARGE), "twin") as here, bare_client(replica, "twin") as there:
        first = await turn(here, "One")
        second = await turn(there, "Two", previous_response_id=first["id"])
        assert second["conversation"] == first["conversation"]
        await turn(here, "Three", previous_response_id=second["id"])
    requests = [messages_in(request) for request in await shared_model.requests()]
    assert requests[2][: len(requests[1])] == requests[1]
    assert requests[1][: len(requests[0])] == requests[0]


async def until_text(events: AsyncIterator[Body], text: str) -> AsyncIterator[Body]:
    """Yield events until their deltas make up a text."""
    said = ""
    async for event in events:
        yield event
        said += event["delta"] if event["type"] == "response.output_text.delta" else ""
        if said == text:
            return
