"""Canonical bytes: the parts of a request are the bytes that are sent."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_shell.models.chat_completions.encoder import encode_call
from shared.models.canonical import canonical_parts, function_json, message_json, read_reasoning
from shared.models.execution import ToolDefinition
from shared.models.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from tests.fakes.json_paths import at
from tests.fakes.model_calls import model_call, tool

MESSAGES: tuple[Message, ...] = (
    SystemMessage(content="Be brief."),
    UserMessage(content="Größe?"),
    AssistantMessage(text="", tool_calls=(ToolCall(call_id="c1", name="look", arguments='{"a": 1}'),)),
    ToolMessage(call_id="c1", content="seen"),
)


def test_parts_stand_in_the_request_as_they_are():
    parts = canonical_parts((tool("b"), tool("a")), MESSAGES)
    body = encode_call(model_call(messages=MESSAGES, tools=(tool("a"), tool("b"))))

    assert b'"tools":' + parts[0] in body
    assert b'"messages":[' + b",".join(parts[1:]) + b"]" in body


def test_without_tools_the_first_part_is_empty():
    assert canonical_parts((), MESSAGES[:1]) == (b"", b'{"role":"system","content":"Be brief."}')


def test_reasoning_of_this_api_stands_in_the_members_in_which_it_was_given():
    reasoning = read_reasoning({"reasoning_content": "Größe.", "reasoning": ""})
    calling = AssistantMessage(text="", tool_calls=(ToolCall(call_id="c", name="f", arguments="{}"),))
    said = (AssistantMessage(text="Hm.", reasoning=reasoning), calling.model_copy(update={"reasoning": reasoning}))
    call = b'[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]'
    members = ',"reasoning_content":"Größe.","reasoning":""}'.encode()

    assert canonical_parts((), said)[1:] == (
        b'{"role":"assistant","content":"Hm."' + members,
        b'{"role":"assistant","content":null,"tool_calls":' + call + members,
    )


def test_each_message_is_a_part():
    parts = canonical_parts((), MESSAGES)

    assert [orjson.loads(part) for part in parts[1:]] == [message_json(message) for message in MESSAGES]


@given(st.permutations([tool(name) for name in "abc"]))
def test_the_order_of_tools_does_not_matter_and_the_callers_list_stays(tools: list[ToolDefinition]):
    before = list(tools)

    assert canonical_parts(tools, ()) == canonical_parts((tool("a"), tool("b"), tool("c")), ())
    assert tools == before


def test_a_schema_that_json_cannot_carry_is_an_error():
    with pytest.raises(orjson.JSONEncodeError):
        canonical_parts((tool("a", {"big": 2**64}),), ())


def test_the_keys_of_a_schema_stand_in_order():
    given = tool("a", {"type": "object", "properties": {"y": {}, "x": {}}})

    assert list(at(function_json(given), "function", "parameters")) == ["properties", "type"]
