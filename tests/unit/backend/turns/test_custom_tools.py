"""Custom tools through both APIs: what the model is offered, and what clients see and send again of its calls."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.conversations.domain.withheld import empty_item
from backend.openai_api.domain.chat_chunks import ChunkProjection
from backend.openai_api.domain.chat_completion import choices_in, completion_body
from backend.openai_api.domain.response_events import LoggedEvent
from backend.openai_api.domain.response_object import build_ending
from backend.openai_api.domain.response_projection import ResponseProjection
from backend.openai_api.domain.shown_output import ShownOutput
from backend.restricted.domain.outgoing_events import texts_of, with_texts
from shared.errors import InvalidRequest
from shared.models.events import ExecutionEvent, FinishReason, FunctionCallDelta, FunctionCallRequested
from shared.models.execution import NamedToolChoice
from shared.models.messages import AssistantMessage
from shared.models.values import JsonObject, objects_in
from shared.prompts.custom_tools import custom_tool
from tests.examples import examples
from tests.fakes.chat_shell_scripted import answer, function_calls
from tests.fakes.openai_house import open_house
from tests.fakes.openai_types import check_chunk, check_completion, check_event, check_item, check_response
from tests.fakes.served_turns import serve_api
from tests.unit.backend.turns.samples import USAGE, decoded, projection

GRAMMAR: JsonObject = {"type": "grammar", "syntax": "lark", "definition": "start: WORD"}
PATCH: dict[str, Any] = {"type": "custom", "name": "patch", "description": "Patches.", "format": GRAMMAR}
WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
WRITTEN = '{ "input": "*** Begin\\n+caf\\u00e9" }'
INPUT = "*** Begin\n+café"
DONE = build_ending(FinishReason.TOOL_CALLS, USAGE)
HI: list[Any] = [{"role": "user", "content": "Hi"}]


def deltas(call_id: str, pieces: Sequence[str], name: str = "patch") -> list[FunctionCallDelta]:
    return [FunctionCallDelta(call_id=call_id, name=name, arguments=piece) for piece in pieces]


def requested(call_id: str, arguments: str, name: str = "patch") -> FunctionCallRequested:
    return FunctionCallRequested(call_id=call_id, name=name, arguments=arguments)


def begun(script: Sequence[ExecutionEvent]) -> tuple[ResponseProjection, list[LoggedEvent]]:
    made = projection(tools=[PATCH, WEATHER], tool_choice={"type": "custom", "name": "patch"})
    return made, [*made.start(), *(event for step in script for event in made.feed(step))]


def play(script: Sequence[ExecutionEvent]) -> tuple[list[LoggedEvent], dict[str, Any]]:
    made, events = begun(script)
    body, last = made.finish(DONE, 1_700_000_009)
    for event in [*events, *last]:
        check_event(event.body, open_responses=False)
    check_response(body, open_responses=False)
    return [*events, *last], body


def told(events: Sequence[LoggedEvent]) -> str:
    return "".join(event["delta"] for event in decoded(list(events)) if event["type"].endswith("input.delta"))


def test_a_call_streams_its_input_and_not_its_json() -> None:
    events, body = play([*deltas("c1", (WRITTEN[:9], WRITTEN[9:23], WRITTEN[23:])), requested("c1", WRITTEN)])
    shown = [
        (event["type"].removeprefix("response."), event.get("delta") or event.get("input"))
        for event in decoded(events[2:-1])
    ]
    assert shown == [
        ("output_item.added", None),
        ("custom_tool_call_input.delta", "*** Begin\n"),
        ("custom_tool_call_input.delta", "+café"),
        ("custom_tool_call_input.done", INPUT),
        ("output_item.done", None),
    ]
    [item] = body["output"]
    assert item == {
        "id": item["id"],
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": "c1",
        "name": "patch",
        "input": INPUT,
    }
    assert item["id"].startswith("ctc_")
    assert body["tools"][0] == PATCH
    assert body["tool_choice"] == {"type": "custom", "name": "patch"}
    check_item(item)


@examples(60)
@given(
    st.sampled_from([WRITTEN, "raw", "", "{}", "[" * 70, '{"input": ""}', '{"input": "cut \\ud8']),
    st.integers(0, 80),
    st.integers(0, 4),
    st.booleans(),
)
def test_a_call_is_the_same_however_it_came_and_whatever_is_lost(
    arguments: str, cut: int, kept: int, in_pieces: bool
) -> None:
    pieces = deltas("c1", (arguments[:cut], arguments[cut:])) if in_pieces else []
    script = [*pieces, *deltas("c2", ("{",), "weather"), requested("c1", arguments)]
    events, body = play(script)
    custom = body["output"][0 if in_pieces else 1]
    assert told(events) == custom["input"]
    shown = ShownOutput()
    before = begun(script[:kept])[1]
    shown.feed(before)
    output = objects_in(body["output"])
    assert told([*before, *shown.catch_up(output)]) == custom["input"]


def test_another_process_ends_a_call_that_it_has_the_whole_of() -> None:
    events = begun(deltas("c1", (WRITTEN[:20],)))[1]
    shown = ShownOutput()
    shown.feed(events)
    later = projection(tools=[PATCH])
    later.restore(shown)
    rest = later.feed(requested("c1", WRITTEN))
    assert told([*events, *rest]) == INPUT
    assert later.output()[0]["input"] == INPUT


def test_chunks_bring_calls_of_both_kinds() -> None:
    script = [*deltas("c1", (WRITTEN[:20], WRITTEN[20:])), requested("c1", WRITTEN), requested("c2", "{}", "weather")]
    events, body = play([*script, requested("c3", "plain")])
    made = ChunkProjection(includes_usage=True)
    chunks = made.feed(events[:5])
    chunks += made.feed(events[6:7])
    chunks += made.feed(events[-1:])
    chunks += made.finish({})
    calls: dict[int, Any] = {}
    for chunk in map(check_chunk, chunks):
        for choice in chunk["choices"]:
            for piece in choice["delta"].get("tool_calls", ()):
                known = calls.setdefault(piece["index"], {**piece, "text": ""})
                known["text"] += piece.get(known["type"], {}).get("input" if known["type"] == "custom" else "arguments")
    completion = completion_body(body, choices_in(body), {})
    check_completion(json.loads(json.dumps(completion)))
    message: Any = objects_in(completion["choices"])[0]["message"]
    assert message["tool_calls"] == [
        {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": INPUT}},
        {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
        {"id": "c3", "type": "custom", "custom": {"name": "patch", "input": "plain"}},
    ]
    assert [(call["type"], call["text"]) for call in calls.values()] == [
        ("custom", INPUT),
        ("function", "{}"),
        ("custom", "plain"),
    ]


async def test_the_responses_api_from_the_tool_to_its_result() -> None:
    scripts = function_calls("c1", name="patch", arguments=WRITTEN), answer("Done."), answer("Bye.")
    async with serve_api(*scripts) as api:
        tool: Any = PATCH
        first = await api.openai.responses.create(
            model="demo-model", input="Patch it.", tools=[tool], tool_choice={"type": "custom", "name": "patch"}
        )
        call = first.output[0]
        assert (call.type, getattr(call, "input", "")) == ("custom_tool_call", INPUT)
        result: Any = {"type": "custom_tool_call_output", "call_id": "c1"}
        answered: Any = {**result, "output": [{"type": "input_text", "text": "patched"}]}
        second = await api.openai.responses.create(previous_response_id=first.id, input=[answered])
        assert [tool.type for tool in second.tools] == ["custom"]
        sent_first, sent = api.turns.sent
        assert sent_first.tools == sent.tools == (custom_tool("patch", "Patches.", GRAMMAR),)
        assert sent_first.parameters.tool_choice == NamedToolChoice(name="patch")
        said = sent.history[1]
        assert isinstance(said, AssistantMessage)
        assert said.tool_calls[0].arguments == WRITTEN
        listed = await api.openai.responses.input_items.list(second.id)
        check_item(listed.data[0].to_dict())
        conversation = second.conversation
        assert conversation is not None
        items = (await api.http.get(f"/v1/conversations/{conversation.id}/items?order=asc")).json()["data"]
        kinds = ["message", "custom_tool_call", "custom_tool_call_output", "message"]
        assert [item["type"] for item in items] == kinds
        for item in items:
            check_item(item)
        other: Any = {**result, "output": "refused"}
        branch = await api.openai.responses.create(previous_response_id=first.id, input=[other])
        assert [tool.type for tool in branch.tools] == ["custom"]
        assert api.turns.sent[-1].tools == sent.tools


@pytest.mark.parametrize("is_named", [True, False])
async def test_a_resent_call_gives_the_model_what_it_wrote(is_named: bool) -> None:
    async with open_house(function_calls("c1", name="patch", arguments=WRITTEN), answer("Done.")) as house:
        first = await house.ask(input=HI, tools=[PATCH])
        [item] = objects_in(first.body["output"])
        call = {"type": "item_reference", "id": item["id"]} if is_named else {**item, "id": "other"}
        result = {"type": "custom_tool_call_output", "call_id": "c1", "output": "patched"}
        second = await house.ask(input=[*HI, call, result], tools=[PATCH])
        assert second.conversation_id == first.conversation_id
        said = house.sent[1].history[1]
        assert isinstance(said, AssistantMessage)
        assert said.tool_calls[0].arguments == WRITTEN


async def test_a_call_from_elsewhere_has_one_form() -> None:
    async with open_house(answer("Done.")) as house:
        call = {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "a\n é"}
        result = {"type": "custom_tool_call_output", "call_id": "c1", "output": "patched"}
        response = await house.ask(input=[*HI, call, result], tools=[PATCH])
        said = house.sent[0].history[1]
        assert isinstance(said, AssistantMessage)
        assert said.tool_calls[0].arguments == '{"input":"a\\n é"}'
        for item in response.input_items:
            check_item(item)
        assert [str(item["id"]).split("_")[0] for item in response.input_items[1:]] == ["ctc", "ctco"]


async def test_the_chat_api_from_the_tool_to_its_result() -> None:
    scripts = function_calls("c1", name="patch", arguments=WRITTEN), answer("Done.")
    async with serve_api(*scripts) as api:
        custom: Any = {"name": "patch", "description": "Patches."}
        shape = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: WORD"}}
        tools: Any = [{"type": "custom", "custom": {**custom, "format": shape}}]
        choice: Any = {"type": "custom", "custom": {"name": "patch"}}
        client = api.openai.chat.completions
        first = await client.create(model="demo-model", messages=HI, tools=tools, tool_choice=choice)
        said = first.choices[0].message
        check_completion(first.to_dict())
        assert [call.to_dict() for call in said.tool_calls or ()] == [
            {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": INPUT}}
        ]
        resent: Any = [*HI, said.model_dump(), {"role": "tool", "tool_call_id": "c1", "content": "patched"}]
        second = await client.create(model="demo-model", messages=resent, tools=tools)
        assert second.choices[0].message.content == "Done."
        sent_first, sent = api.turns.sent
        assert sent_first.tools == sent.tools == (custom_tool("patch", "Patches.", GRAMMAR),)
        assert sent.conversation_id == sent_first.conversation_id
        stored = await api.openai.responses.input_items.list(second.id)
        assert [item.type for item in stored.data] == ["custom_tool_call_output"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [PATCH, {**WEATHER, "name": "patch"}]}, "tools[1].name"),
        ({"tools": [{**PATCH, "name": "two words"}]}, "tools[0].name"),
        (
            {"tools": [{**PATCH, "format": {**GRAMMAR, "syntax": "ebnf"}}]},
            "tools[0].format.syntax",
        ),
        ({"tools": [{**WEATHER, "parameters": custom_tool("x", None, GRAMMAR).parameters}]}, "tools[0].parameters"),
        ({"tools": [WEATHER], "tool_choice": {"type": "custom", "name": "weather"}}, "tool_choice.name"),
        ({"tools": [PATCH], "tool_choice": {"type": "function", "name": "patch"}}, "tool_choice.name"),
    ],
)
async def test_refusals_name_the_field(fields: dict[str, Any], param: str) -> None:
    async with open_house() as house:
        with pytest.raises(InvalidRequest) as caught:
            await house.ask(input=HI, **fields)
        assert caught.value.param == param


def test_a_withheld_call_keeps_its_name_alone() -> None:
    call = {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "secret", "id": "ctc_1"}
    assert empty_item({**call}) == {**call, "input": ""}
    result = {"type": "custom_tool_call_output", "call_id": "c1", "output": "secret"}
    assert empty_item({**result}, with_users=True)["output"] != "secret"


def test_no_escape_in_broken_json_hides_what_a_restricted_call_shows() -> None:
    broken = requested("c1", '{"input": "\\u0034\\u0037 keepers')
    assert "47 keepers" in list(texts_of(broken))
    marked = with_texts(broken, lambda text: text.replace("47", "#"))
    assert isinstance(marked, FunctionCallRequested)
    assert marked.arguments == '{"input":"# keepers"}'
    twice = requested("c1", '{"input": "\\u0034\\u0037", "input": "x"}')
    assert "47" in list(texts_of(twice))
