"""The request's bytes."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from chat_shell.models.chat_completions.encoder import ChatCompletionsApi, Dialect, encode_call
from chat_shell.models.ports import ModelCall
from shared.errors import InvalidRequest
from shared.models.canonical import read_reasoning
from shared.models.execution import NamedToolChoice, ReasoningEffort, Verbosity
from shared.models.messages import (
    AssistantMessage,
    ImageDetail,
    ImagePart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tests.fakes.model_calls import asked, model_call, tool


def encoded(call: ModelCall) -> dict[str, Any]:
    return orjson.loads(encode_call(call))


def test_a_plain_call_in_full():
    assert encode_call(model_call()).decode() == snapshot(
        '{"model":"fake-model","prompt_cache_key":"key_1","stream":true,"stream_options":{"include_usage":true},'
        '"messages":[{"role":"user","content":"Hello"}]}'
    )


def test_each_kind_of_message():
    call = model_call(
        messages=(
            SystemMessage(content="Be brief."),
            UserMessage(content=(TextPart(text="What is it?"), ImagePart(url="data:x", detail=ImageDetail.LOW))),
            AssistantMessage(text="", tool_calls=(ToolCall(call_id="c1", name="look", arguments='{"a": 1}'),)),
            ToolMessage(call_id="c1", content="seen"),
            AssistantMessage(text="A cat."),
            AssistantMessage(text=""),
        )
    )

    assert encoded(call)["messages"] == snapshot(
        [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image_url", "image_url": {"url": "data:x", "detail": "low"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "seen"},
            {"role": "assistant", "content": "A cat."},
            {"role": "assistant", "content": ""},
        ]
    )


def test_tools_are_sorted_by_name_and_their_schemas_by_key():
    one = model_call(tools=(tool("b"), tool("a", {"type": "object", "properties": {"y": {}, "x": {}}})))
    other = model_call(tools=(tool("a", {"properties": {"x": {}, "y": {}}, "type": "object"}), tool("b")))

    assert encode_call(one) == encode_call(other)
    assert [item["function"]["name"] for item in encoded(one)["tools"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        (NamedToolChoice(name="a"), {"type": "function", "function": {"name": "a"}}),
    ],
)
def test_tool_choice(choice: Any, sent: Any):
    body = encoded(model_call(tools=(tool("a"),), parameters=asked(tool_choice=choice, parallel_tool_calls=False)))

    assert body["tool_choice"] == sent
    assert body["parallel_tool_calls"] is False


def test_without_tools_nothing_about_tools_is_sent():
    body = encoded(model_call(parameters=asked(tool_choice="required")))

    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(body)


def test_parameters_that_were_asked_for_and_no_others():
    body = encoded(
        model_call(
            parameters=asked(
                temperature=0.0,
                max_output_tokens=64,
                reasoning_effort=ReasoningEffort.LOW,
                verbosity=Verbosity.HIGH,
                seed=0,
                stop=("END",),
            )
        )
    )

    assert body["temperature"] == 0.0
    assert body["max_tokens"] == 64
    assert (body["reasoning_effort"], body["verbosity"]) == ("low", "high")
    assert (body["seed"], body["stop"]) == (0, ["END"])
    assert not {"verbosity", "seed", "stop"} & set(encoded(model_call()))
    assert not {"top_p", "presence_penalty", "frequency_penalty", "response_format"} & set(body)


def test_structured_output_takes_the_nested_form_and_keeps_the_order_of_its_schema():
    schema: dict[str, Any] = {"type": "object", "properties": {"why": {}, "answer": {}}}
    text_format: dict[str, Any] = {
        "type": "json_schema",
        "name": "reply",
        "schema": schema,
        "strict": True,
        "description": None,
    }

    sent = encoded(model_call(parameters=asked(text_format=text_format)))["response_format"]

    assert sent == {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": True}}
    assert list(sent["json_schema"]["schema"]["properties"]) == ["why", "answer"]


@pytest.mark.parametrize(("text_format", "sent"), [({"type": "text"}, None), ({"type": "json_object"},) * 2])
def test_other_text_formats(text_format: dict[str, Any], sent: dict[str, Any] | None):
    assert encoded(model_call(parameters=asked(text_format=text_format))).get("response_format") == sent


def test_a_longer_conversation_begins_with_the_bytes_of_the_shorter():
    messages = (SystemMessage(content="S"), UserMessage(content="one"))
    shorter = encode_call(model_call(messages=messages, tools=(tool("a"),)))
    longer = encode_call(
        model_call(
            messages=(*messages, AssistantMessage(text="1"), UserMessage(content="two")),
            tools=(tool("a"),),
            parameters=asked(tool_choice="none", temperature=1.0),
        )
    )

    assert longer.startswith(shorter[: shorter.index(b"]", shorter.index(b'"messages"'))])


@pytest.mark.parametrize(
    ("refused", "gone"),
    [("prompt_cache_key", "prompt_cache_key"), ("stream_options", "stream_options"), ("max_tokens", "max_tokens")],
)
def test_a_dialect_without_a_refused_field(refused: str, gone: str):
    dialect = Dialect().without(refused)

    assert dialect is not None
    assert gone not in orjson.loads(encode_call(model_call(parameters=asked(max_output_tokens=5)), dialect))


def test_the_output_limit_changes_its_name_and_never_goes():
    dialect = Dialect().without("max_tokens")

    assert dialect is not None
    body = orjson.loads(encode_call(model_call(parameters=asked(max_output_tokens=5)), dialect))
    assert body["max_completion_tokens"] == 5


GROQ = b"""{"error":{"message":"'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' :
 property 'reasoning_content' is unsupported)]","type":"invalid_request_error"}}"""
DEEPSEEK = b"""{"error":{"message":"The `reasoning_content` in the thinking mode must be passed back to the API."}}"""


def test_reasoning_that_a_server_does_not_read_is_left_out_of_the_one_call():
    reasoning = read_reasoning({"reasoning_content": "Hm.", "reasoning": "Hm."})
    call = model_call(messages=(UserMessage(content="Hi"), AssistantMessage(text="Yes.", reasoning=reasoning)))
    api = ChatCompletionsApi()
    avoidance = api.avoid(400, GROQ)
    assert avoidance is not None and not avoidance.is_lasting
    assert b'"content":"Yes.","reasoning_content":"Hm.","reasoning":"Hm."}]' in api.encode(call)
    assert b'"content":"Yes.","reasoning":"Hm."}]' in avoidance.api.encode(call)
    assert avoidance.api.avoid(400, GROQ) is None
    assert api.avoid(400, DEEPSEEK) is None
    assert api.avoid(400, b'{"error":"reasoning_effort is not supported"}') is None
    lasting = api.avoid(400, b"stream_options is not supported")
    assert lasting is not None and lasting.is_lasting


def test_what_the_caller_asked_for_is_never_given_up():
    assert Dialect().without("temperature") is None
    assert Dialect(cache_key=False).without("prompt_cache_key") is None


def test_a_schema_that_is_no_json():
    with pytest.raises(InvalidRequest) as caught:
        encode_call(model_call(tools=(tool("a", {"maximum": 2**70}),)))
    assert caught.value.param == "tools"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives(text: str):
    assert encoded(model_call(messages=(UserMessage(content=text),)))["messages"][0]["content"] == text
