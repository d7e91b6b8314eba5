"""`responses.stream()` and `responses.parse()`, the helpers of the official client."""

import orjson
import pytest
from openai import AsyncOpenAI, pydantic_function_tool
from pydantic import BaseModel

from tests.e2e.client.wire import Wire
from tests.fakes.model_server import FakeModelControl, Reply, ScriptedCall

HELLO = Reply(text=("Hel", "lo", " there"))


class Sum(BaseModel):
    """The shape that an answer is to have."""

    terms: list[int]
    total: int


class Add(BaseModel):
    """Add two numbers."""

    left: int
    right: int


SUM = Reply(text=('{"terms": [1, 2],', ' "total": 3}'))


async def test_the_helper_tells_deltas_and_the_final_response(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    await model.script(HELLO)
    async with ann.responses.stream(model="fake-model", input="Hi") as stream:
        snapshots = [event.snapshot async for event in stream if event.type == "response.output_text.delta"]
        final = await stream.get_final_response()
    assert snapshots[-1] == "Hello there"
    assert final.output_text == "Hello there"
    assert final.usage is not None


async def test_the_helper_comes_back_to_a_response(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(HELLO)
    created = await ann.responses.create(input="Hi")
    async with ann.responses.stream(response_id=created.id, starting_after=4) as stream:
        numbers = [event.sequence_number async for event in stream]
        final = await stream.get_final_response()
    assert numbers[0] == 5
    assert final.output_text == "Hello there"
    assert "starting_after" not in wire.newest.url


async def test_the_helper_follows_a_running_turn(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    await model.script(HELLO.model_copy(update={"hold_after": 1}))
    begun = await ann.responses.create(input="Hi", background=True)
    async with ann.responses.stream(response_id=begun.id) as stream:
        async for event in stream:
            if event.type == "response.output_text.delta":
                break
        await model.release()
        assert (await stream.get_final_response()).output_text == "Hello there"


async def test_an_answer_that_was_cut_is_iterated(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    await model.script(HELLO.model_copy(update={"finish_reason": "length"}))
    async with ann.responses.stream(model="fake-model", input="Hi") as stream:
        types = [event.type async for event in stream]
        with pytest.raises(RuntimeError):
            await stream.get_final_response()
    assert types[-1] == "response.incomplete"


async def test_a_structured_answer_is_parsed(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(SUM)
    parsed = await ann.responses.parse(model="fake-model", input="1 + 2", text_format=Sum)
    assert parsed.output_parsed == Sum(terms=[1, 2], total=3)
    echoed = wire.newest.json["text"]["format"]
    assert (echoed["type"], echoed["name"], echoed["strict"]) == ("json_schema", "Sum", True)
    assert set(echoed["schema"]["properties"]) == {"terms", "total"}
    sent = (await model.requests())[0].json_body["response_format"]
    assert sent == {
        "type": "json_schema",
        "json_schema": {"name": "Sum", "strict": True, "schema": echoed["schema"]},
    }


async def test_a_structured_answer_is_streamed(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    await model.script(SUM)
    async with ann.responses.stream(model="fake-model", input="1 + 2", text_format=Sum) as stream:
        done = [event.parsed async for event in stream if event.type == "response.output_text.done"]
        final = await stream.get_final_response()
    assert done == [Sum(terms=[1, 2], total=3)]
    assert final.output_parsed == Sum(terms=[1, 2], total=3)


async def test_any_json_object(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(text=('{"a": 1}',)))
    response = await ann.responses.create(input="JSON, please", text={"format": {"type": "json_object"}})
    assert orjson.loads(response.output_text) == {"a": 1}
    assert wire.newest.json["text"] == {"format": {"type": "json_object"}}
    assert (await model.requests())[0].json_body["response_format"] == {"type": "json_object"}


async def test_the_shape_of_one_turn_is_not_that_of_the_next(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    await model.script(SUM, HELLO)
    first = await ann.responses.parse(model="fake-model", input="1 + 2", text_format=Sum)
    await ann.responses.create(input="Hi", previous_response_id=first.id)
    assert "response_format" not in (await model.requests())[1].json_body


async def test_arguments_of_a_function_are_parsed(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    tool = pydantic_function_tool(Add, name="add")["function"]
    parameters = tool.get("parameters")
    assert parameters is not None
    await model.script(Reply(tool_calls=(ScriptedCall(name="add", arguments='{"left": 1, "right": 2}'),)))
    async with ann.responses.stream(
        model="fake-model",
        input="1 + 2",
        tools=[{"type": "function", "name": "add", "parameters": parameters, "strict": True}],
    ) as stream:
        arguments = [e.arguments async for e in stream if e.type == "response.function_call_arguments.done"]
        final = await stream.get_final_response()
    assert arguments == ['{"left": 1, "right": 2}']
    [call] = final.output
    assert call.type == "function_call"
    assert call.parsed_arguments == {"left": 1, "right": 2}
