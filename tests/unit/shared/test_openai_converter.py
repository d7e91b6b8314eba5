import copy
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given

from shared.errors import InvalidRequest
from shared.models.execution import AccessMode, ExecutionRequest
from shared.models.json_text import encode_json
from shared.models.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from shared.models.openai_converter import OpenAIRequestConverter
from tests.examples import examples
from tests.fakes.chat_shell_requests import full_request
from tests.strategies import execution_requests

Body = dict[str, Any]


def body_of(request: ExecutionRequest) -> Body:
    return OpenAIRequestConverter.from_execution_request(request)


def request_of(body: Body) -> ExecutionRequest:
    return OpenAIRequestConverter.to_execution_request(body)


@examples(60)
@given(execution_requests())
def test_nothing_is_lost_on_the_way_there_and_back(request: ExecutionRequest):
    body = body_of(request)
    assert request_of(body) == request
    assert request_of(json.loads(json.dumps(body))) == request
    assert request_of(json.loads(encode_json(body))) == request


def test_openais_words_mean_what_openai_says():
    body = body_of(full_request())
    assert {key: value for key, value in body.items() if key not in ("input", "metadata")} == {
        "model": "demo-model",
        "instructions": "You answer questions.",
        "tools": [
            {
                "type": "function",
                "name": "weather",
                "description": "Tell the weather.",
                "parameters": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}},
                    "required": ["city"],
                },
                "strict": True,
            },
            {"type": "function", "name": "ping", "description": None, "parameters": None, "strict": None},
        ],
        "tool_choice": {"type": "function", "name": "weather"},
        "parallel_tool_calls": False,
        "temperature": 0.25,
        "top_p": 1.0,
        "max_output_tokens": 512,
        "reasoning": {"effort": "low"},
        "text": {
            "format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}},
            "verbosity": "high",
        },
        "prompt_cache_key": "ck_1",
        "stream": True,
        "store": False,
    }


def test_an_assistant_message_is_a_message_item_and_its_calls():
    assert body_of(full_request())["input"] == [
        {
            "type": "message",
            "role": "user",
            "content": "How is it cooled?\n\n<time>2026-11-22 09:29 Europe/Berlin</time>",
        },
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "knowledge_base_search",
            "arguments": '{"query": "冷却"}',
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "[1] By air."},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "By air [1]."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ""}]},
        {"type": "function_call", "call_id": "call_2", "name": "weather", "arguments": "{"},
        {
            "type": "function_call_output",
            "call_id": "call_2",
            "output": [{"type": "input_text", "text": "sunny"}],
        },
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "And this?"},
                {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "high"},
            ],
        },
    ]


def test_metadata_carries_the_rest_as_strings():
    assert body_of(full_request())["metadata"] == {
        "request_id": "req_1",
        "conversation_id": "conv_1",
        "turn_id": "resp_1",
        "epoch": "3",
        "user": '{"id":"u1","tenant":"default","display_name":"Ада"}',
        "kb_meta_prompt": "Knowledge bases:\n- kb_1 Handbook",
        "dynamic_blocks": '[{"name":"identity","text":"The user is Ада."}]',
        "sent_at": "2026-11-22T08:30:00.123457+00:00",
        "time_zone": "Europe/Berlin",
        "access_mode": "restricted",
        "ticket": "t.1",
        "user_words": "Is it cooled at all?\nHow is it cooled?\nAnd this?",
        "knowledge_bases": '[{"id":"kb_1","name":"Handbook","access_mode":"full"},'
        '{"id":"kb_2","name":"Board","access_mode":"restricted"}]',
        "limits": '{"max_knowledge_calls":10,"max_model_calls":null}',
        "deadline": "2126-11-22T08:40:00+00:00",
        "presence_penalty": "-0.5",
        "frequency_penalty": "1e-05",
        "seed": "-7",
        "stop": '["END","\\n\\n"]',
    }


def test_what_openai_lets_a_caller_leave_out_may_be_left_out():
    body = body_of(full_request())
    for key in ("instructions", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p"):
        del body[key]
    for key in ("max_output_tokens", "reasoning", "text", "stream", "store"):
        del body[key]
    body["input"] = "Hello"
    request = request_of(body)
    assert (request.system_prompt, request.tools, request.history, request.prompt) == ("", (), (), "Hello")
    assert request.parameters.tool_choice == "auto"
    assert request.parameters.parallel_tool_calls is True
    assert request.parameters.temperature is None


def test_items_as_other_clients_write_them():
    body = body_of(full_request())
    body["input"] = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "c", "name": "n", "arguments": ""},
        {"type": "function_call_output", "call_id": "c", "output": "d"},
    ]
    request = request_of(body)
    call = ToolCall(call_id="c", name="n", arguments="")
    assert request.history == (
        UserMessage(content="a"),
        AssistantMessage(text="b", tool_calls=(call,)),
        ToolMessage(call_id="c", content="d"),
    )
    assert request.prompt is None


def test_an_hour_that_a_zone_repeats_keeps_its_instant():
    twice = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)
    request = ExecutionRequest.model_validate({**dict(full_request()), "sent_at": twice})
    assert request_of(body_of(request)) == request


def without_access_mode(body: Body) -> None:
    del body["metadata"]["access_mode"]


def without_access_mode_of_a_base(body: Body) -> None:
    body["metadata"]["access_mode"] = "full"
    body["metadata"]["knowledge_bases"] = '[{"id": "kb_1", "name": "Handbook"}]'


@pytest.mark.parametrize("leave_out", [without_access_mode, without_access_mode_of_a_base])
def test_a_missing_access_mode_is_restricted(leave_out: Callable[[Body], None]):
    body = body_of(full_request())
    leave_out(body)
    knowledge = request_of(body).knowledge
    assert knowledge.access_mode is AccessMode.RESTRICTED
    assert knowledge.bases[-1].access_mode is AccessMode.RESTRICTED


MISSING = object()

REFUSED: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("surprise",), 1, "surprise"),
    (("model",), MISSING, "model"),
    (("model",), 5, "model"),
    (("input",), MISSING, "input"),
    (("input",), 7, "input"),
    (("input", 0), "x", "input[0]"),
    (("input", 0, "role"), "critic", "input[0].role"),
    (("input", 3, "role"), "developer", "input[3].role"),
    (("input", 0, "type"), "computer_call", "input[0].type"),
    (("input", 0, "content"), None, "input[0].content"),
    (("input", 0, "name"), "x", "input[0].name"),
    (("input", 1, "arguments"), {}, "input[1].arguments"),
    (("input", 2, "output"), MISSING, "input[2].output"),
    (("input", 3, "content", 0, "type"), "input_text", "input[3].content[0].type"),
    (("input", 7, "content", 0, "text"), "\ud800", "input[7].content[0].text"),
    (("input", 7, "content", 1, "detail"), "sharp", "input[7].content[1].detail"),
    (("input", 7, "content", 1, "image_url"), None, "input[7].content[1].image_url"),
    (("input", 7, "content", 1, "type"), "input_file", "input[7].content[1].type"),
    (("tools", 0, "name"), MISSING, "tools[0].name"),
    (("tools", 0, "type"), "web_search", "tools[0].type"),
    (("tools", 1, "name"), "weather", "tools"),
    (("tools", 0, "parameters"), {"maximum": float("nan")}, "tools[0].parameters.maximum"),
    (("tool_choice",), "maybe", "tool_choice"),
    (("tool_choice", "name"), MISSING, "tool_choice.name"),
    (("temperature",), "0.5", "temperature"),
    (("top_p",), float("inf"), "top_p"),
    (("max_output_tokens",), 2**63, "max_output_tokens"),
    (("reasoning", "effort"), "huge", "reasoning.effort"),
    (("text", "verbosity"), "loud", "text.verbosity"),
    (("stream",), False, "stream"),
    (("store",), True, "store"),
    (("prompt_cache_key",), MISSING, "prompt_cache_key"),
    (("metadata",), MISSING, "metadata"),
    (("metadata", "surprise"), "1", "metadata.surprise"),
    (("metadata", "epoch"), "-1", "metadata.epoch"),
    (("metadata", "epoch"), "9223372036854775808", "metadata.epoch"),
    (("metadata", "epoch"), 3, "metadata.epoch"),
    (("metadata", "epoch"), MISSING, "metadata.epoch"),
    (("metadata", "access_mode"), "all", "metadata.access_mode"),
    (("metadata", "access_mode"), "full", "metadata.access_mode"),
    (("metadata", "user_words"), None, "metadata.user_words"),
    (("metadata", "knowledge_bases"), '[{"id": "kb_1"}]', "metadata.knowledge_bases[0].name"),
    (("metadata", "knowledge_bases"), "[", "metadata.knowledge_bases"),
    (
        ("metadata", "knowledge_bases"),
        '[{"id": "a", "name": "b", "access_mode": "x"}]',
        "metadata.knowledge_bases[0].access_mode",
    ),
    (("metadata", "user"), '{"id": "u", "tenant": "t", "display_name": "\\ud800"}', "metadata.user"),
    (("metadata", "user"), {"id": "u"}, "metadata.user"),
    (("metadata", "dynamic_blocks"), '[{"name": "x"}]', "metadata.dynamic_blocks[0].text"),
    (
        ("metadata", "limits"),
        '{"max_knowledge_calls": "3", "max_model_calls": 1}',
        "metadata.limits.max_knowledge_calls",
    ),
    (("metadata", "sent_at"), "2026-11-22T08:30:00", "metadata.sent_at"),
    (("metadata", "sent_at"), "yesterday", "metadata.sent_at"),
    (("metadata", "deadline"), MISSING, "metadata.deadline"),
    (("metadata", "presence_penalty"), "NaN", "metadata.presence_penalty"),
    (("metadata", "kb_meta_prompt"), None, "metadata.kb_meta_prompt"),
]


@pytest.mark.parametrize(("path", "value", "param"), REFUSED)
def test_a_wrong_value_is_refused_by_its_name(path: tuple[str | int, ...], value: Any, param: str):
    body = copy.deepcopy(body_of(full_request()))
    parent: Any = body
    for step in path[:-1]:
        parent = parent[step]
    if value is MISSING:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    with pytest.raises(InvalidRequest) as refusal:
        request_of(body)
    assert refusal.value.param == param
    assert param in refusal.value.message


def test_a_body_nested_too_deeply_is_refused():
    deep: Any = {}
    for _ in range(100_000):
        deep = {"items": deep}
    body = body_of(full_request())
    body["tools"][0]["parameters"] = deep
    with pytest.raises(InvalidRequest):
        request_of(body)
