"""Reading a chat completion's body: the turn that it asks for, and which field is named when one is wrong."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.conversations.domain.conversation_log import EntryKind
from backend.openai_api.domain.chat_request import ChatTurn
from backend.openai_api.domain.turn_request import TurnRequest
from backend.turns.services.running_turn import RunningTurn
from shared.errors import InvalidRequest, UnsupportedValue
from tests.examples import examples
from tests.fakes.openai_house import ADA, open_house
from tests.fakes.parsed_requests import parse_chat_request
from tests.unit.backend.turns.samples import request

IMAGE = "data:image/png;base64,iVBORw0KGgo="
USER: dict[str, Any] = {"role": "user", "content": "Hi"}
CALL: dict[str, Any] = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
WEATHER: dict[str, Any] = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
BOUND: dict[str, Any] = {"type": "file_search", "vector_store_ids": ["kb_1"], "max_num_results": 3}


def asked(**fields: Any) -> ChatTurn:
    return parse_chat_request(orjson.dumps({"messages": [USER], **fields}))


def image_part(**more: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": IMAGE, **more}}


HISTORY: list[Any] = [
    {"role": "system", "content": "Be kind."},
    {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
    {"role": "user", "name": "ann", "content": [{"type": "text", "text": "See?"}, image_part(detail="low")]},
    {"role": "assistant", "content": "Let me look.", "tool_calls": [CALL, {**CALL, "id": "c2"}], "refusal": None},
    {"role": "tool", "tool_call_id": "c1", "content": "sun"},
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "rain"}]},
    {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": "c3"}]},
    {"role": "tool", "tool_call_id": "c3", "content": "fog"},
    {"role": "assistant", "content": "Fog.", "annotations": [], "audio": None, "function_call": None},
    # as LiteLLM sends a message back that it has read
    {"role": "assistant", "content": "Mist.", "provider_specific_fields": {"refusal": None}, "thinking_blocks": []},
    {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}]},
    {"role": "assistant", "content": None, "refusal": "No."},
    {"role": "assistant", "content": ""},
    USER,
]


def test_a_field_of_a_message_that_is_null_is_one_left_out() -> None:
    function = {**CALL["function"], "later": None}
    padded = [{**message, "later": None, "name": None} for message in HISTORY]
    padded[3] |= {"tool_calls": [{**call, "type": None, "function": function} for call in HISTORY[3]["tool_calls"]]}
    assert asked(messages=padded).request == asked(messages=HISTORY).request


def test_a_history_becomes_the_input_list_of_a_response() -> None:
    turn = asked(messages=HISTORY)
    assert turn.request == request(
        input=[
            {"role": "system", "content": "Be kind."},
            {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "See?"},
                    {"type": "input_image", "image_url": IMAGE, "detail": "low"},
                ],
            },
            {"role": "assistant", "content": "Let me look."},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
            {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "sun"},
            {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "rain"}]},
            {"type": "function_call", "call_id": "c3", "name": "weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c3", "output": "fog"},
            {"role": "assistant", "content": "Fog."},
            {"role": "assistant", "content": "Mist."},
            {
                "role": "assistant",
                "content": [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "b"}],
            },
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": "Hi"},
        ],
        text={},
    )
    assert turn.paths[3:9] == (
        "messages[3]",
        "messages[3].tool_calls[0]",
        "messages[3].tool_calls[1]",
        "messages[4]",
        "messages[5]",
        "messages[6].tool_calls[0]",
    )


ALIKE: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "store": False,
    "temperature": 0.5,
    "top_p": 1,
    "presence_penalty": 1,
    "frequency_penalty": -1,
    "parallel_tool_calls": False,
    "seed": 7,
    "stop": ["a", "b"],
    "metadata": {"k": "v"},
    "user": "u",
    "service_tier": "flex",
    "safety_identifier": "s",
    "prompt_cache_key": "p",
    "prompt_cache_retention": "24h",
}
SCHEMA: dict[str, Any] = {"name": "n", "schema": {"type": "object"}, "strict": True, "description": "d"}
TRANSLATED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (ALIKE, ALIKE),
    ({"n": 1, "logprobs": False, "top_logprobs": 0, "modalities": ["text"]}, {"top_logprobs": 0}),
    ({"max_completion_tokens": 5}, {"max_output_tokens": 5}),
    ({"max_tokens": 5}, {"max_output_tokens": 5}),
    ({"max_tokens": 5, "max_completion_tokens": 5}, {"max_output_tokens": 5}),
    ({"reasoning_effort": "minimal"}, {"reasoning": {"effort": "minimal"}}),
    ({"verbosity": "low"}, {"text": {"verbosity": "low"}}),
    ({"response_format": {"type": "text"}}, {"text": {"format": {"type": "text"}}}),
    ({"response_format": {"type": "json_object"}}, {"text": {"format": {"type": "json_object"}}}),
    (
        {"response_format": {"type": "json_schema", "json_schema": SCHEMA}},
        {"text": {"format": {"type": "json_schema", **SCHEMA}}},
    ),
    (
        {"tools": [WEATHER, BOUND], "tool_choice": "required"},
        {
            "tools": [{"type": "function", **WEATHER["function"]}, BOUND],
            "tool_choice": "required",
        },
    ),
    ({"tools": []}, {"tools": []}),
    (
        {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "weather"}}},
        {
            "tools": [{"type": "function", **WEATHER["function"]}],
            "tool_choice": {"type": "function", "name": "weather"},
        },
    ),
    (
        {"tools": [BOUND], "tool_choice": {"type": "file_search"}},
        {"tools": [BOUND], "tool_choice": {"type": "file_search"}},
    ),
]


@pytest.mark.parametrize(("given", "meant"), TRANSLATED)
def test_each_field_means_what_its_counterpart_means(given: dict[str, Any], meant: dict[str, Any]) -> None:
    alike: TurnRequest = request(**{"text": {}, **meant, "input": [USER]})
    assert asked(**given).request == alike


def test_null_is_the_same_as_nothing() -> None:
    fields = asked().chat.model_dump(exclude={"messages"})
    assert set(fields.values()) == {None}
    assert asked(**fields).request == asked().request


GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: WORD"}
"""As Responses has it."""

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"messages": "Hi"}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": [USER] * 2001}, "messages"),
    ({"messages": ["Hi"]}, "messages[0]"),
    ({"messages": [{"role": "user"}]}, "messages[0].content"),
    ({"messages": [{"content": "x"}]}, "messages[0].role"),
    ({"messages": [USER, {"role": "function", "name": "f", "content": "x"}]}, "messages[1].role"),
    ({"messages": [USER, {"role": "user", "content": "x", "mood": 1}]}, "messages[1].mood"),
    ({"messages": [USER, {"role": "assistant", "content": None}]}, "messages[1].content"),
    ({"messages": [USER, {"role": "assistant", "content": "x", "function_call": {}}]}, "messages[1].function_call"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
    (
        {"messages": [{"role": "user", "content": [image_part(url="ftp://a/b")]}]},
        "messages[0].content[0].image_url.url",
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
        "messages[0].content[0].image_url.url",
    ),
    ({"messages": [{"role": "user", "content": [image_part(size=1)]}]}, "messages[0].content[0].image_url.size"),
    (
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"url": "x"}}]}]},
        "messages[0].content[0].file.url",
    ),
    ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[0].content[0].type"),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "f"}}]}]},
        "messages[0].tool_calls[0].function.arguments",
    ),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{**CALL, "type": "custom"}]}]},
        "messages[0].tool_calls[0].custom",
    ),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{**CALL, "type": "mcp"}]}]},
        "messages[0].tool_calls[0].type",
    ),
    ({"tools": [{"type": "custom", "name": "x"}]}, "tools[0].custom"),
    ({"tools": [{"type": "custom", "custom": {"name": "knowledge_base_x"}}]}, "tools[0].custom.name"),
    ({"tools": [{"type": "custom", "custom": {"name": "x", "format": GRAMMAR}}]}, "tools[0].custom.format.grammar"),
    ({"tool_choice": {"type": "custom", "custom": {}}}, "tool_choice.custom.name"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
    ({"n": 9}, "n"),
    ({"top_logprobs": 2}, "top_logprobs"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ({"n": 0}, "n"),
    ({"n": 2, "if_running": "queue"}, "if_running"),
    ({"stream": "yes"}, "stream"),
    ({"temperature": 3}, "temperature"),
    ({"seed": 2**63}, "seed"),
    ({"stop": ""}, "stop"),
    ({"stop": ["a"] * 5}, "stop"),
    ({"stop": ["a", 5]}, "stop[1]"),
    ({"stop": {}}, "stop"),
    ({"max_completion_tokens": 0}, "max_completion_tokens"),
    ({"max_tokens": 5, "max_completion_tokens": 6}, "max_tokens"),
    ({"modalities": ["text", "audio"]}, "modalities[1]"),
    ({"logit_bias": 5}, "logit_bias"),
    ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
    ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
    ({"tools": [{"type": "function", "name": "weather"}]}, "tools[0].function"),
    ({"tools": [{"type": "function", "function": {"name": "two words"}}]}, "tools[0].function.name"),
    ({"tools": [WEATHER, WEATHER]}, "tools[1].function.name"),
    ({"tools": [{**BOUND, "vector_store_ids": []}]}, "tools[0].vector_store_ids"),
    ({"tool_choice": "maybe"}, "tool_choice"),
    ({"tool_choice": {"type": "function", "function": {}}}, "tool_choice.function.name"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}}, "response_format.json_schema.schema"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
]
UNSUPPORTED: list[tuple[dict[str, Any], str]] = [
    ({"functions": []}, "functions"),
    ({"function_call": "auto"}, "function_call"),
    ({"prediction": {"type": "content", "content": "x"}}, "prediction"),
    ({"audio": {"voice": "v"}}, "audio"),
    ({"web_search_options": {}}, "web_search_options"),
    ({"moderation": {"model": "m"}}, "moderation"),
    ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {}}}, "tool_choice.type"),
    ({"response_format": {"type": "grammar"}}, "response_format.type"),
]


@pytest.mark.parametrize(("fields", "param"), [*WRONG, *UNSUPPORTED])
def test_the_wrong_field_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        asked(**fields)
    assert caught.value.param == param
    assert isinstance(caught.value, UnsupportedValue) or (fields, param) not in UNSUPPORTED


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"functions": []}, "use 'tools'"),
        ({"function_call": "none"}, "use 'tool_choice'"),
        ({"n": 9}, "must be at most 8"),
        ({"messages": [{"role": "king", "content": "x"}]}, "'developer', 'user', 'assistant' or 'tool'"),
        ({"prediction": {}}, "leave it out"),
        ({"messages": [USER, {"role": "assistant"}]}, "or the tool_calls"),
    ],
)
def test_a_refusal_says_what_would_be_right(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        asked(**fields)


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([USER, {"role": "tool", "tool_call_id": "c9", "content": "x"}], "messages[1].tool_call_id"),
        ([USER, {"role": "assistant", "content": "x", "tool_calls": [CALL]}, USER], "messages[2]"),
        ([USER, {"role": "assistant", "tool_calls": [CALL, CALL]}], "messages[1].tool_calls[1].id"),
    ],
)
async def test_what_is_wrong_with_the_whole_is_named_by_its_message(messages: list[Any], param: str) -> None:
    async with open_house() as house:
        turn = asked(messages=messages)
        with pytest.raises(InvalidRequest) as caught:
            await house.services.start(ADA, turn.request, "req_1")
        turn.name_as_given(caught.value)
        assert caught.value.param == param


@pytest.mark.parametrize(
    ("param", "given_name"),
    [
        ("text.format.type", "response_format.type"),
        ("text.format.schema", "response_format.json_schema.schema"),
        ("text.verbosity", "verbosity"),
        ("reasoning.effort", "reasoning_effort"),
        ("max_output_tokens", "max_completion_tokens"),
        ("input[0].content[1]", "messages[0].content[1]"),
        ("input[9]", "input[9]"),
        ("temperature", "temperature"),
        (None, None),
    ],
)
def test_a_refusal_by_the_model_s_api_names_the_field_too(param: str | None, given_name: str | None) -> None:
    error = InvalidRequest("no", param=param)
    asked().name_as_given(error)
    assert error.param == given_name


names = st.sampled_from(["role", "content", "type", "text", "tool_calls", "function", "name", "id", "messages", "stop"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["user", "assistant", "tool", "function", "text"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=8,
)


@examples(100)
@given(st.lists(json_values, max_size=3), st.dictionaries(names, json_values, max_size=3))
def test_any_json_is_a_request_or_a_refusal(messages: list[Any], fields: dict[str, Any]) -> None:
    try:
        asked(**{"messages": messages, **fields})
    except InvalidRequest as error:
        assert error.message


async def test_the_house_is_sent_the_messages_in_their_order() -> None:
    async with open_house() as house:
        messages = [
            {"role": "system", "content": "Be kind."},
            USER,
            {"role": "assistant", "content": "Look.", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "sun"},
        ]
        running = await house.services.start(ADA, asked(messages=messages, seed=3, stop="x").request, "req_1")
        assert isinstance(running, RunningTurn)
        ended = await running.wait_until_ended()
        [sent] = house.sent
        assert [message.role for message in sent.history] == ["user", "assistant", "tool"]
        assert sent.prompt is None
        assert sent.system_prompt.startswith("Be kind.")
        assert (sent.parameters.seed, sent.parameters.stop) == (3, ("x",))
        kinds = [entry.kind for entry in house.log_of(ended.conversation_id)]
        assert kinds[-1] is EntryKind.ASSISTANT
