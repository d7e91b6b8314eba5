"""One running turn a conversation, whoever asks and however often."""

import asyncio
from typing import Any

import httpx2
import openai
import pytest

from tests.e2e.pair import Pair
from tests.e2e.turns import Body, bare_client, items_of, messages_in, new_conversation, turn
from tests.fakes.model_server import FakeModelControl, Reply

pytestmark = pytest.mark.combination

RACERS = 20


def assert_locked(answer: httpx2.Response) -> None:
    """Check that an answer is the 409 that no client repeats."""
    assert answer.status_code == 409, answer.text
    assert answer.headers["x-should-retry"] == "false"
    error: Body = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["code"]) == ("conflict_error", "conversation_locked")


async def test_the_second_of_two_turns_is_refused(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(text=("Slow.",), hold_after=0))
    async with bare_client(pair, "rival") as client:
        conversation = await new_conversation(client)
        first = asyncio.create_task(turn(client, "First", conversation=conversation))
        await model.wait_held()
        body: Body = {"input": "Second", "conversation": conversation}
        for more in ({}, {"stream": True}, {"background": True}):
            assert_locked(await client.post("/v1/responses", json=body | more))
        items = f"/v1/conversations/{conversation}/items"
        message = {"role": "user", "content": "x"}
        assert_locked(await client.post(items, json={"items": [message]}))
        await model.release()
        response = await first
        second = await turn(client, "Third", conversation=conversation)
        assert len(await items_of(client, conversation)) == 4
    assert (response["status"], second["status"]) == ("completed", "completed")
    assert len(await model.requests()) == 2
    assert "Second" not in (await model.requests())[1].body.decode()


async def test_the_official_client_is_not_led_to_repeat(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(text=("Slow.",), hold_after=0))
    async with bare_client(pair, "rival") as client:
        conversation = await new_conversation(client)
        first = asyncio.create_task(turn(client, "First", conversation=conversation))
        await model.wait_held()
        attempts: list[httpx2.Request] = []

        async def count(request: httpx2.Request) -> None:
            attempts.append(request)

        async with openai.AsyncOpenAI(
            base_url=f"{pair.backend_url}/v1",
            api_key=pair.key("rival"),
            http_client=httpx2.AsyncClient(event_hooks={"request": [count]}, trust_env=False, verify=False),
        ) as official:
            with pytest.raises(openai.ConflictError) as raised:
                await official.responses.create(input="Second", conversation=conversation)
        await model.release()
        await first
    assert len(attempts) == 1
    assert raised.value.code == "conversation_locked"


async def test_of_twenty_racing_turns_exactly_one_runs(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(text=("Won.",), hold_after=0, repeat=True))
    async with bare_client(pair, "racer") as client:
        conversation = await new_conversation(client)

        async def race(number: int) -> httpx2.Response:
            body: Body = {"input": f"Racer {number}", "conversation": conversation}
            return await client.post("/v1/responses", json=body)

        racing = {asyncio.create_task(race(number)) for number in range(RACERS)}
        lost: set[asyncio.Task[Any]] = set()
        while len(lost) < RACERS - 1:
            ended, racing = await asyncio.wait(racing, return_when=asyncio.FIRST_COMPLETED)
            lost |= ended
        for task in lost:
            assert_locked(task.result())
        await model.wait_held()
        await model.release()
        [winner] = racing
        won = (await winner).json()
        assert len(await model.requests()) == 1
        await model.reset()
        await turn(client, "After", previous_response_id=won["id"])
        items = await items_of(client, conversation)
    assert [item["role"] for item in items] == ["user", "assistant", "user", "assistant"]
    [after] = await model.requests()
    assert [message["role"] for message in messages_in(after)] == ["system", "user", "assistant", "user"]


async def test_a_running_response_cannot_be_continued(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(text=("Slow.",), hold_after=0))
    async with bare_client(pair, "rival") as client:
        running = await turn(client, "First", background=True)
        await model.wait_held()
        answer = await client.post("/v1/responses", json={"input": "Next", "previous_response_id": running["id"]})
        assert_locked(answer)
        assert answer.json()["error"]["param"] == "previous_response_id"
        await model.release()
        await client.get(f"/v1/responses/{running['id']}?stream=true")
        assert (await turn(client, "Next", previous_response_id=running["id"]))["status"] == "completed"


async def test_racing_forks_of_one_response_all_run(pair: Pair, model: FakeModelControl) -> None:
    async with bare_client(pair, "forker") as client:
        first = await turn(client, "Root")
        await turn(client, "Trunk", previous_response_id=first["id"])
        forks = await asyncio.gather(
            *(turn(client, f"Fork {number}", previous_response_id=first["id"]) for number in range(5))
        )
    conversations = {fork["conversation"]["id"] for fork in forks}
    assert len(conversations) == 5
    assert first["conversation"]["id"] not in conversations
    root, trunk, *forked = await model.requests()
    shared = messages_in(trunk)[:3]
    assert shared[:2] == messages_in(root)
    for request in forked:
        assert messages_in(request)[:3] == shared
        assert len(messages_in(request)) == 4
        assert request.json_body["prompt_cache_key"] == root.json_body["prompt_cache_key"]
