"""Who asks, and with which of the official client's ways of asking."""

import asyncio

import openai
import pytest
from openai import AsyncOpenAI

from tests.e2e.client.wire import Wire, wired_client
from tests.e2e.pair import Pair
from tests.fakes.model_server import FakeModelControl, Reply

HELLO = Reply(text=("Hel", "lo"))


async def test_the_synchronous_client(pair: Pair, model: FakeModelControl) -> None:
    await model.script(HELLO, HELLO, HELLO)
    with pair.client("ann") as client:
        first = client.responses.create(input="Hi")
        assert first.output_text == "Hello"
        assert [event.type for event in client.responses.create(input="Hi", stream=True)][-1] == "response.completed"
        with client.responses.stream(model="fake-model", input="Hi", previous_response_id=first.id) as stream:
            assert stream.get_final_response().output_text == "Hello"
        assert [model.id for model in client.models.list()] == ["fake-model"]


async def test_null_is_the_same_as_nothing(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await ann.responses.create(
        input="Hi",
        background=None,
        conversation=None,
        include=None,
        instructions=None,
        max_output_tokens=None,
        max_tool_calls=None,
        metadata=None,
        parallel_tool_calls=None,
        previous_response_id=None,
        reasoning=None,
        service_tier=None,
        store=None,
        stream=None,
        stream_options=None,
        temperature=None,
        top_logprobs=None,
        top_p=None,
        truncation=None,
    )
    with_nulls = wire.newest.json
    await ann.responses.create(input="Hi")
    own = ("id", "created_at", "completed_at", "conversation", "output", "usage")
    assert {key: value for key, value in with_nulls.items() if key not in own} == {
        key: value for key, value in wire.newest.json.items() if key not in own
    }
    one, two = await model.requests()
    assert {**one.json_body, "prompt_cache_key": ""} == {**two.json_body, "prompt_cache_key": ""}


async def test_everything_that_may_be_included_is_taken(ann: AsyncOpenAI) -> None:
    response = await ann.responses.create(
        input="Hi",
        stream_options={"include_obfuscation": False},
        include=["reasoning.encrypted_content", "message.output_text.logprobs", "message.input_image.image_url"],
    )
    assert response.status == "completed"
    with pytest.raises(openai.BadRequestError) as caught:
        await ann.responses.create(input="Hi", include=["everything"])  # pyright: ignore[reportArgumentType]
    assert caught.value.param == "include[0]"
    with pytest.raises(openai.BadRequestError):
        await ann.responses.retrieve(response.id, include=["everything"])  # pyright: ignore[reportArgumentType]


async def test_the_same_name_in_another_tenant_is_somebody_else(ann: AsyncOpenAI, pair: Pair) -> None:
    mine = await ann.responses.create(input="Hi")
    other = ann.with_options(api_key=pair.key("ann", tenant="elsewhere"))
    assert mine.conversation is not None
    for ask in (
        other.responses.retrieve(mine.id),
        other.conversations.retrieve(mine.conversation.id),
        other.responses.create(input="Hi", previous_response_id=mine.id),
    ):
        with pytest.raises(openai.NotFoundError):
            await ask


async def test_a_service_acts_for_a_user(ann: AsyncOpenAI, pair: Pair) -> None:
    service = ann.with_options(api_key=pair.key("gateway", role="service"), default_headers={"X-Ballast-User": "ann"})
    made = await service.responses.create(input="Hi")
    assert (await ann.responses.retrieve(made.id)).id == made.id
    with pytest.raises(openai.NotFoundError):
        await service.with_options(default_headers={"X-Ballast-User": "bob"}).responses.retrieve(made.id)


async def test_of_two_turns_at_once_one_runs(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(text=("one",), hold_after=0))
    begun = await ann.conversations.create()
    asked = [ann.responses.create(input=text, conversation=begun.id, background=True) for text in "abcd"]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, openai.ConflictError)]
    [running] = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len(refused) == 3
    await model.wait_held()
    await model.release()
    async with ann.responses.stream(response_id=running.id) as stream:
        await stream.get_final_response()
    assert len(await model.requests()) == 1
    await ann.conversations.items.list(begun.id)
    assert len(wire.newest.json["data"]) == 2


async def test_responses_outlive_their_conversation(ann: AsyncOpenAI, wire: Wire) -> None:
    response = await ann.responses.create(input="Hi")
    before = wire.newest.json
    assert response.conversation is not None
    await ann.conversations.delete(response.conversation.id)
    await ann.responses.retrieve(response.id)
    assert wire.newest.json == before
    await ann.responses.input_items.list(response.id)
    assert wire.newest.texts == ["Hi"]
    with pytest.raises(openai.NotFoundError) as caught:
        await ann.responses.create(input="And?", previous_response_id=response.id)
    assert caught.value.param == "previous_response_id"


async def test_many_users_at_once(pair: Pair, wire: Wire, model: FakeModelControl) -> None:
    async def ask(name: str) -> str:
        async with wired_client(pair, name, wire) as client:
            await model.script(Reply(text=(f"Hello {name}",)), when=f"I am {name}.")
            stream = await client.responses.create(input=f"I am {name}.", stream=True)
            return "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])

    names = [f"user{number}" for number in range(8)]
    assert await asyncio.gather(*map(ask, names)) == [f"Hello {name}" for name in names]
