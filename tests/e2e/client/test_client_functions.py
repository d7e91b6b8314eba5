"""Functions that the client runs itself: calls go out, outputs come in."""

from typing import Any

import openai
import orjson
import pytest
from openai import AsyncOpenAI

from tests.e2e.client.knowledge_bases import messages_of, new_base, offered, searches, tool_texts
from tests.e2e.client.wire import Wire
from tests.e2e.pair import Pair
from tests.fakes.model_server import FakeModelControl, Reply, ScriptedCall

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Any = {"type": "function", "name": "weather", "parameters": PARAMETERS, "strict": True, "description": "Sky."}
CLOCK: Any = {"type": "function", "name": "clock", "parameters": {"type": "object", "properties": {}}}
ROME = ScriptedCall(name="weather", arguments='{"city": "Rome"}', call_id="call_rome")
OSLO = ScriptedCall(name="weather", arguments='{"city": "Oslo"}', call_id="call_oslo")


def output(call_id: str, text: Any) -> Any:
    """What the client's function returned."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}


async def test_a_call_goes_out_and_its_output_comes_in(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(text=("Let me", " look."), tool_calls=(ROME,)), Reply(text=("Sunny.",)))
    first = await ann.responses.create(input="Weather?", tools=[WEATHER])
    message, call = wire.newest.json["output"]
    assert (message["type"], message["content"][0]["text"]) == ("message", "Let me look.")
    assert call == {
        "id": call["id"],
        "type": "function_call",
        "status": "completed",
        "call_id": "call_rome",
        "name": "weather",
        "arguments": '{"city": "Rome"}',
    }
    assert (first.status, first.incomplete_details) == ("completed", None)
    assert wire.newest.json["tools"] == [WEATHER]

    second = await ann.responses.create(previous_response_id=first.id, input=[output("call_rome", "sun")])
    assert second.output_text == "Sunny."
    one, two = await model.requests()
    assert "weather" in offered(one)
    assert offered(two) == offered(one)
    assert messages_of(two)[: len(messages_of(one))] == messages_of(one)
    asked, answered = messages_of(two)[-2:]
    assert (asked["content"], asked["tool_calls"][0]["id"]) == ("Let me look.", "call_rome")
    assert answered == {"role": "tool", "tool_call_id": "call_rome", "content": "sun"}

    await ann.responses.input_items.list(second.id)
    [item] = wire.newest.json["data"]
    assert (item["type"], item["call_id"], item["output"]) == ("function_call_output", "call_rome", "sun")
    assert second.conversation is not None
    await ann.conversations.items.list(second.conversation.id, order="asc")
    kinds = [item["type"] for item in wire.newest.json["data"]]
    assert kinds == ["message", "message", "function_call", "function_call_output", "message"]


async def test_the_events_of_a_call(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(tool_calls=(ROME,)))
    stream = await ann.responses.create(input="Weather?", tools=[WEATHER], stream=True)
    types = [event.type async for event in stream]
    assert types == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        *["response.function_call_arguments.delta"] * (len(types) - 6),
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert wire.newest.events[2]["item"]["arguments"] == ""
    assert "".join(event["delta"] for event in wire.newest.events[3:-3]) == ROME.arguments
    assert wire.newest.events[-3]["arguments"] == ROME.arguments


async def test_two_calls_at_once(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(tool_calls=(ROME, OSLO)), Reply(text=("Both.",)))
    first = await ann.responses.create(input="Weather?", tools=[WEATHER])
    assert [item["call_id"] for item in wire.newest.json["output"]] == ["call_rome", "call_oslo"]
    given = [output("call_oslo", "snow"), output("call_rome", "sun")]
    second = await ann.responses.create(previous_response_id=first.id, input=given)
    assert second.output_text == "Both."
    assert tool_texts((await model.requests())[1]) == ["sun", "snow"]


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ("And?", "input"),
        ([{"role": "user", "content": "And?"}], "input[0]"),
        ([output("call_rome", "sun")], "input"),
        ([output("call_rome", "sun"), {"role": "user", "content": "And?"}], "input[1]"),
        ([output("call_paris", "fog")], "input[0].call_id"),
        ([output("call_rome", "a"), output("call_rome", "b"), output("call_oslo", "c")], "input[1].call_id"),
    ],
)
async def test_calls_are_answered_exactly(ann: AsyncOpenAI, model: FakeModelControl, given: Any, param: str) -> None:
    await model.script(Reply(tool_calls=(ROME, OSLO)))
    first = await ann.responses.create(input="Weather?", tools=[WEATHER])
    with pytest.raises(openai.BadRequestError) as caught:
        await ann.responses.create(previous_response_id=first.id, input=given)
    assert caught.value.param == param
    assert len(await model.requests()) == 1
    both = [output("call_rome", "sun"), output("call_oslo", "snow")]
    after = await ann.responses.create(previous_response_id=first.id, input=both)
    assert after.status == "completed"


async def test_a_new_question_may_follow_the_outputs(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(tool_calls=(ROME,)), Reply(text=("Sunny.",)))
    first = await ann.responses.create(input="Weather?", tools=[WEATHER])
    given: Any = [output("call_rome", "sun"), {"role": "user", "content": "In a word!"}]
    await ann.responses.create(previous_response_id=first.id, input=given)
    sent = messages_of((await model.requests())[1])
    assert [message["role"] for message in sent[-3:]] == ["assistant", "tool", "user"]
    assert sent[-1]["content"].startswith("In a word!\n\n<time>")


async def test_outputs_alone_bring_neither_suffix_nor_context(
    ann: AsyncOpenAI, model: FakeModelControl, pair: Pair
) -> None:
    base = new_base(pair, "skies", {"rome.md": "Rome is sunny."})
    await model.script(Reply(tool_calls=(ROME,)), Reply(text=("Sunny.",)))
    first = await ann.responses.create(input="Weather?", tools=[WEATHER, base.tool])
    await ann.responses.create(previous_response_id=first.id, input=[output("call_rome", "sun")])
    one, two = await model.requests()
    assert [message["role"] for message in messages_of(one)] == ["system", "user", "user"]
    assert [message["role"] for message in messages_of(two)] == ["system", "user", "user", "assistant", "tool"]
    assert messages_of(two)[:3] == messages_of(one)
    assert messages_of(two)[-1]["content"] == "sun"


async def test_a_call_of_ours_and_one_of_the_clients(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, pair: Pair
) -> None:
    base = new_base(pair, "skies", {"rome.md": "Rome has many umbrellas."})
    ours = searches("umbrellas").tool_calls[0].model_copy(update={"call_id": "call_search"})
    await model.script(Reply(tool_calls=(ROME, ours)), Reply(text=("Take one [1].",)))
    first = await ann.responses.create(input="Umbrella?", tools=[WEATHER, base.tool], stream=True)
    assert [event async for event in first]
    body = wire.newest.events[-1]["response"]
    assert [item["type"] for item in body["output"]] == ["file_search_call", "function_call"]
    assert len(await model.requests()) == 1

    second = await ann.responses.create(previous_response_id=body["id"], input=[output("call_rome", "rain")])
    rain, found = tool_texts((await model.requests())[1])
    assert rain == "rain"
    assert "many umbrellas" in found
    assert second.output_text == "Take one [1]."
    assert wire.newest.json["output"][-1]["content"][0]["annotations"][0]["filename"] == "rome.md"


async def test_an_output_of_parts(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(tool_calls=(ROME,)), Reply(text=("Sunny.",)))
    first = await ann.responses.create(input="Weather?", tools=[WEATHER])
    parts = [{"type": "input_text", "text": "sun"}, {"type": "input_text", "text": "shine"}]
    second = await ann.responses.create(previous_response_id=first.id, input=[output("call_rome", parts)])
    await ann.responses.input_items.list(second.id)
    assert wire.newest.json["data"][0]["output"] == parts
    assert "shine" in orjson.dumps(messages_of((await model.requests())[1])[-1]).decode()


async def test_tools_are_the_whole_truth_or_stay(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    first = await ann.responses.create(input="a", tools=[WEATHER, CLOCK])
    assert [tool["name"] for tool in wire.newest.json["tools"]] == ["clock", "weather"]
    assert wire.newest.json["tools"][0]["strict"] is None
    second = await ann.responses.create(input="b", previous_response_id=first.id)
    assert [tool["name"] for tool in wire.newest.json["tools"]] == ["clock", "weather"]
    third = await ann.responses.create(input="c", previous_response_id=second.id, tools=[CLOCK])
    assert [tool["name"] for tool in wire.newest.json["tools"]] == ["clock"]
    await ann.responses.create(input="d", previous_response_id=third.id, tools=[])
    assert wire.newest.json["tools"] == []
    mine = [[name for name in offered(r) if name in ("clock", "weather")] for r in await model.requests()]
    assert mine == [["clock", "weather"], ["clock", "weather"], ["clock"], []]


async def test_the_choice_of_a_function(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(Reply(tool_calls=(ROME,)))
    await ann.responses.create(input="a", tools=[WEATHER], tool_choice={"type": "function", "name": "weather"})
    assert wire.newest.json["tool_choice"] == {"type": "function", "name": "weather"}
    sent = (await model.requests())[0].json_body["tool_choice"]
    assert sent == {"type": "function", "function": {"name": "weather"}}
    for choice in ("none", "required", "auto"):
        await ann.responses.create(input="a", tools=[WEATHER], tool_choice=choice)
        assert wire.newest.json["tool_choice"] == choice
        assert (await model.requests())[-1].json_body["tool_choice"] == choice


async def test_a_resent_history_with_calls_continues_its_conversation(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl
) -> None:
    await model.script(Reply(text=("Look.",), tool_calls=(ROME,)), Reply(text=("Sunny.",)))
    asked: list[Any] = [{"role": "user", "content": "Weather?"}]
    first = await ann.responses.create(input=asked, tools=[WEATHER])
    resent: list[Any] = [
        *asked,
        *(item.model_dump(exclude_none=True) for item in first.output),
        output("call_rome", "sun"),
    ]
    second = await ann.responses.create(input=resent, tools=[WEATHER])
    assert second.output_text == "Sunny."
    assert second.conversation == first.conversation
    before, sent = map(messages_of, await model.requests())
    assert sent[: len(before)] == before
    assert [message["role"] for message in sent[1:]] == ["user", "assistant", "tool"]
    assert (sent[2]["content"], sent[2]["tool_calls"][0]["id"]) == ("Look.", "call_rome")


WRONG_TOOLS: list[tuple[Any, str]] = [
    ([WEATHER, WEATHER], "tools[1].name"),
    ([{**WEATHER, "name": "knowledge_base_search"}], "tools[0].name"),
    ([{**WEATHER, "name": "no good"}], "tools[0].name"),
    ([{"type": "file_search", "vector_store_ids": []}], "tools[0].vector_store_ids"),
]


@pytest.mark.parametrize(("tools", "param"), WRONG_TOOLS)
async def test_tools_that_are_not_taken(ann: AsyncOpenAI, tools: Any, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await ann.responses.create(input="a", tools=tools)
    assert caught.value.param == param
