"""Reading a body: what is taken, and which field is named when one is wrong."""

from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backend.knowledge.domain.tickets import SearchOptions
from backend.openai_api.domain.client_tools import function_definitions
from shared.errors import InvalidRequest, UnsupportedValue
from tests.examples import examples
from tests.fakes.json_paths import at
from tests.fakes.openai_types import check_response
from tests.fakes.parsed_requests import parse_turn_request
from tests.unit.backend.turns.samples import fresh_body, request

IMAGE = "data:image/png;base64,iVBORw0KGgo="
DEEP = b'{"input":"x","tools":[{"type":"function","name":"f","parameters":' + b'{"a":' * 900 + b"1" + b"}" * 901 + b"]}"
RANKED = {"type": "file_search", "vector_store_ids": ["a"]}

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"input": 5}, "input"),
    ({"input": []}, "input"),
    ({"input": [7]}, "input[0]"),
    ({"input": [{"role": "user"}]}, "input[0].content"),
    ({"input": [{"content": "x"}]}, "input[0].role"),
    ({"input": [{"role": "king", "content": "x"}]}, "input[0].role"),
    ({"input": [{"role": "user", "content": "x", "mood": 1}]}, "input[0].mood"),
    ({"input": [{"role": "user", "content": []}]}, "input[0].content"),
    ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text"),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "ftp://a/b"}]}]},
        "input[0].content[0].image_url",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,?"}]}]},
        "input[0].content[0].image_url",
    ),
    ({"input": [{"type": "function_call_output", "call_id": "c", "output": {}}]}, "input[0].output"),
    ({"input": [{"type": "function_call_output", "call_id": "", "output": ""}]}, "input[0].call_id"),
    ({"model": ""}, "model"),
    ({"stream": "yes"}, "stream"),
    ({"temperature": 2.5}, "temperature"),
    ({"temperature": "1"}, "temperature"),
    ({"top_p": -1}, "top_p"),
    ({"presence_penalty": 3}, "presence_penalty"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"max_tool_calls": 0}, "max_tool_calls"),
    ({"top_logprobs": 21}, "top_logprobs"),
    ({"metadata": {"a": 1}}, "metadata.a"),
    ({"metadata": {"a": "b" * 513}}, "metadata.a"),
    ({"metadata": {str(number): "" for number in range(17)}}, "metadata"),
    ({"include": ["everything"]}, "include[0]"),
    ({"reasoning": {"effort": "huge"}}, "reasoning.effort"),
    ({"text": {"format": {"type": "json_schema", "name": "a"}}}, "text.format.schema"),
    ({"text": {"verbosity": "loud"}}, "text.verbosity"),
    ({"tool_choice": "maybe"}, "tool_choice"),
    ({"truncation": "some"}, "truncation"),
    ({"service_tier": "royal"}, "service_tier"),
    ({"safety_identifier": "x" * 65}, "safety_identifier"),
    ({"conversation": {}}, "conversation.id"),
    ({"conversation": "c", "previous_response_id": "r"}, "previous_response_id"),
    ({"store": False, "background": True}, "store"),
    ({"store": False, "conversation": "c"}, "store"),
    ({"tools": [{"type": "function", "name": "two words"}]}, "tools[0].name"),
    ({"tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "f"}]}, "tools[1].name"),
    ({"tools": [{"type": "function", "name": "knowledge_base_search"}]}, "tools[0].name"),
    ({"tools": [{"type": "file_search", "vector_store_ids": []}]}, "tools[0].vector_store_ids"),
    ({"tools": [{"type": "file_search", "vector_store_ids": ["a", 5]}]}, "tools[0].vector_store_ids[1]"),
    (
        {"tools": [{"type": "file_search", "vector_store_ids": ["a"], "max_num_results": 51}]},
        "tools[0].max_num_results",
    ),
    (
        {"tools": [{**RANKED, "ranking_options": {"score_threshold": 1.5}}]},
        "tools[0].ranking_options.score_threshold",
    ),
    ({"tools": [{**RANKED, "ranking_options": {"ranker": "best"}}]}, "tools[0].ranking_options.ranker"),
    ({"tools": [{**RANKED, "ranking_options": {"rank": 1}}]}, "tools[0].ranking_options.rank"),
]
UNSUPPORTED: list[tuple[dict[str, Any], str]] = [
    ({"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input[0].content[0].type"),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": IMAGE, "file_id": "f"}]}]},
        "input[0].content[0].file_id",
    ),
    ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"tools": [{}]}, "tools[0].type"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}}, "tool_choice.type"),
    ({"text": {"format": {"type": "grammar"}}}, "text.format.type"),
    ({"prompt": {"id": "pmpt_1"}}, "prompt"),
    (
        {
            "tools": [
                {**RANKED, "ranking_options": {"hybrid_search": {"embedding_weight": 1, "text_weight": 1}}},
            ]
        },
        "tools[0].ranking_options.hybrid_search",
    ),
]


@pytest.mark.parametrize(("fields", "param"), WRONG)
def test_the_wrong_field_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        request(**fields)
    assert caught.value.param == param
    assert caught.value.message


def test_a_field_that_is_null_is_one_left_out() -> None:
    """`model_dump()` of OpenAI's client writes fields as null that no server has sent."""
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    items: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "reasoning", "summary": []},
        call,
        {"type": "function_call_output", "call_id": "c", "output": "sun"},
    ]
    padded = [{**item, "async_": None, "id": None, "status": None, "summary": item.get("summary")} for item in items]
    padded[0] |= {"type": None, "content": [{"type": "input_text", "text": "Hi", "later": None}]}
    padded[1]["summary"] = None
    assert request(input=padded, later=None, tools=[{**RANKED, "later": None}]) == request(input=items, tools=[RANKED])
    with pytest.raises(InvalidRequest) as caught:
        request(input=[{**items[0], "async_": False}])
    assert caught.value.param == "input[0].async_"


TEXT_OR_PARTS = "input[0].content: must be a string or a list of parts."
ROLES = "input[0].role: must be 'user', 'assistant', 'system' or 'developer'."


MISLED: list[tuple[Any, str]] = [
    (5, "input: must be a string or a list of items."),
    (None, "input: must be a string or a list of items."),
    ([7], "input[0]: must be an object."),
    ([{"role": "user", "content": 5}], TEXT_OR_PARTS),
    ([{"role": "system", "content": {}}], TEXT_OR_PARTS),
    ([{"role": "assistant", "content": True}], TEXT_OR_PARTS),
    ([{"type": "function_call_output", "call_id": "c", "output": 5}], TEXT_OR_PARTS.replace("content", "output")),
    ([{"role": "owner", "content": "x"}], ROLES),
    ([{"role": 5, "content": "x"}], ROLES),
    ([{"role": ["user"], "content": "x"}], ROLES),
    ([{"content": "x"}], "input[0].role: this field is required; add it."),
]


@pytest.mark.parametrize(("given", "message"), MISLED)
def test_a_message_tells_all_that_would_be_right(given: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        request(input=given)
    assert caught.value.message == message


@pytest.mark.parametrize(("fields", "param"), UNSUPPORTED)
def test_what_openai_knows_and_we_do_not_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(UnsupportedValue) as caught:
        request(**fields)
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("raw", "param"),
    [
        (b"", None),
        (b"[1]", None),
        (b"{}", "input"),
        (b'{"input": NaN}', None),
        (b'{"input": "\xff"}', None),
        (b'{"input": "\\ud800"}', None),
        (b'{"input": "\\u0000"}', "input"),
        (b'{"input": "x", "metadata": {"a": "\\u0000"}}', "metadata.a"),
        (b'{"input": "x", "max_output_tokens": 1e400}', None),
        (b'{"input": "x", "max_output_tokens": 100000000000000000000000000}', "max_output_tokens"),
        (b"[" * 100_000, None),
    ],
)
def test_no_body_breaks_the_reader(raw: bytes, param: str | None) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_turn_request(raw)
    assert caught.value.param == param


def test_a_body_nested_too_deeply_is_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_turn_request(DEEP)
    assert (caught.value.param or "").startswith("tools[0].parameters.a.a")


SCHEMA = b'{"input": "x", "tools": [{"type": "function", "name": "f", "parameters": {"enum": [%s, "%s", %s.5]}}]}'
MEMBER = "tools[0].parameters.enum[0]"


@given(number=st.integers() | st.integers(2**63 - 3, 2**64 + 3) | st.integers(-(2**63) - 3, -(2**63) + 3))
@example(number=2**64)
@example(number=-(2**63) - 1)
@example(number=10**4999)
def test_a_whole_number_arrives_as_it_was_sent_or_is_refused_by_its_name(number: int) -> None:
    digits = b"%d" % number if abs(number) < 10**4000 else b"1" + b"0" * 4999
    try:
        read = parse_turn_request(SCHEMA % (digits, digits, b"1"))
    except InvalidRequest as error:
        assert not -(2**63) <= number < 2**64
        assert error.param == MEMBER
    else:
        assert at(function_definitions(read.tools or ())[0].parameters, "enum", 0) == number
        assert -(2**63) <= number < 2**64


@pytest.mark.parametrize("number", [b"1e30", b"12345678901234567890.5", b"0.1234567890123456789012"])
def test_numbers_that_are_not_whole_may_have_as_many_digits_as_they_like(number: bytes) -> None:
    read = parse_turn_request(SCHEMA % (number, b"12345678901234567890123", b"2"))
    assert (function_definitions(read.tools or ())[0].parameters or {})["enum"] == [
        float(number),
        "12345678901234567890123",
        2.5,
    ]


field_names = ["type", "role", "content", "input", "text", "format", "name", "tools", "id", "output", "call_id", "user"]
field_names += ["tool_choice", "conversation", "metadata", "reasoning", "include", "vector_store_ids", "message"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(field_names), inner, max_size=4),
    max_leaves=8,
)


@examples(200)
@given(st.dictionaries(st.sampled_from(field_names), json_values, max_size=5))
def test_any_json_is_a_request_or_a_refusal(body: dict[str, Any]) -> None:
    try:
        parse_turn_request(orjson.dumps({"input": "x", **body}))
    except InvalidRequest as error:
        assert error.message


def test_what_openai_accepts_is_accepted_and_echoed() -> None:
    given = request(
        input=[
            {"role": "developer", "content": "Be kind."},
            {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": IMAGE}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None},
            {"type": "file_search_call", "id": "fs_1", "queries": ["q"], "status": "completed", "results": None},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Hm", "annotations": [], "logprobs": []}],
            },
            {"role": "user", "content": "Hi"},
        ],
        stream=True,
        stream_options={"include_obfuscation": False},
        temperature=1,
        top_p=0.5,
        frequency_penalty=-1,
        tools=[{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}],
        tool_choice={"type": "function", "name": "f"},
        parallel_tool_calls=False,
        text={"format": {"type": "json_object"}, "verbosity": "low"},
        reasoning={"effort": "high", "summary": "auto"},
        include=["reasoning.encrypted_content"],
        truncation="auto",
        service_tier="flex",
        user="u",
        metadata={"k": "v"},
        prompt_cache_key="key",
        safety_identifier="safe",
        max_tool_calls=3,
        top_logprobs=0,
    )
    body = fresh_body(given, instructions="Be kind.")
    check_response(body)
    assert body["temperature"] == 1.0
    assert body["tool_choice"] == {"type": "function", "name": "f"}
    assert body["text"] == {"format": {"type": "json_object"}, "verbosity": "low"}
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert (body["service_tier"], body["metadata"], body["max_tool_calls"]) == ("default", {"k": "v"}, 3)


def test_a_bare_request_becomes_a_whole_response() -> None:
    body = fresh_body(request())
    check_response(body)
    assert len(set(body) - {"conversation"}) == 31


def test_a_schema_is_echoed_as_openai_does() -> None:
    shape = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    body = fresh_body(request(text={"format": shape}), knowledge_base_ids=("kb_1",))
    check_response(body, open_responses=False)
    assert at(body, "text")["format"] == shape
    assert body["tools"] == [{"type": "file_search", "vector_store_ids": ["kb_1"]}]


def test_of_several_searches_the_strictest_bounds_hold_and_are_told_back() -> None:
    given = request(
        tools=[
            {**RANKED, "max_num_results": 9, "ranking_options": {"ranker": "auto", "score_threshold": 0.5}},
            {**RANKED, "max_num_results": 3, "ranking_options": {"score_threshold": 0.25}},
            RANKED,
        ]
    )
    assert given.search == SearchOptions(max_results=3, min_score=0.5)
    body = fresh_body(given, knowledge_base_ids=("kb_1",), search=given.search)
    check_response(body, open_responses=False)
    (shown,) = at(body, "tools")
    assert (shown["max_num_results"], shown["ranking_options"]["score_threshold"]) == (3, 0.5)
