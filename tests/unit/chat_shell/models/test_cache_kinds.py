"""What the operator says of a provider's cache: breakpoints, marks, salts, and the header for routers."""

from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from chat_shell.models.configured.directory import api_of
from chat_shell.models.configured.entries import ModelEntry
from chat_shell.models.configured.prices import Prices
from chat_shell.models.ports import ModelAnswerEnd, ModelCall
from chat_shell.models.transport.breakpoints import breakpoint_places
from chat_shell.models.transport.diagnoses import LastAnswers
from chat_shell.models.transport.observing import observed
from chat_shell.models.transport.streaming import AnswerReader, Endpoint, salt_of
from shared.models.events import CacheRule, FinishReason, Usage
from shared.models.execution import Purpose
from shared.models.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tests.examples import examples
from tests.fakes.model_calls import model_call, tool
from tests.unit.chat_shell.models.conversations import conversations

TALK = (
    SystemMessage(content="Be brief."),
    UserMessage(content=(TextPart(text="What"), TextPart(text="is it?"))),
    AssistantMessage(text="", tool_calls=(ToolCall(call_id="c1", name="look", arguments="{}"),)),
    ToolMessage(call_id="c1", content="seen"),
    AssistantMessage(text="A cat."),
    UserMessage(content="And?"),
)
CALL = model_call(messages=TALK, tools=(tool("look"),), stored=5, reminder="Cite.")
OPENAI = {"chat_completions": CompletionCreateParamsStreaming, "responses": ResponseCreateParamsStreaming}
SECRET = "s" * 32


def entry(api: str = "chat_completions", **fields: Any) -> ModelEntry:
    return ModelEntry(name="m", base_url="http://x", api=api, **fields)


def encoded(call: ModelCall, api: str, **fields: Any) -> bytes:
    return api_of(entry(api, **fields)).encode(call)


def test_all_but_answers_and_the_reminder_end_at_a_breakpoint():
    assert encoded(CALL, "chat_completions", cache={"kind": "breakpoints"}).decode() == snapshot(
        '{"model":"fake-model","prompt_cache_key":"key_1","stream":true,"stream_options":{"include_usage":true},"prom'
        'pt_cache_options":{"mode":"explicit","ttl":"30m"},"tools":[{"type":"function","function":{"name":"look","des'
        'cription":"The tool look."}}],"parallel_tool_calls":true,"messages":[{"role":"system","content":[{"type":"te'
        'xt","text":"Be brief.","prompt_cache_breakpoint":{"mode":"explicit"}}]},{"role":"user","content":[{"type":"t'
        'ext","text":"What"},{"type":"text","text":"is it?","prompt_cache_breakpoint":{"mode":"explicit"}}]},{"role":'
        '"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":'
        '"{}"}}]},{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"seen","prompt_cache_breakpoint'
        '":{"mode":"explicit"}}]},{"role":"assistant","content":"A cat."},{"role":"user","content":[{"type":"text","t'
        'ext":"And?","prompt_cache_breakpoint":{"mode":"explicit"}}]},{"role":"user","content":"Cite."}],"tool_choice'
        '":"auto"}'
    )


def test_the_system_message_is_an_item_where_instructions_may_carry_no_breakpoint():
    assert encoded(CALL, "responses", cache={"kind": "breakpoints"}).decode() == snapshot(
        '{"model":"fake-model","prompt_cache_key":"key_1","stream":true,"store":false,"include":["reasoning.encrypted'
        '_content"],"tools":[{"type":"function","name":"look","description":"The tool look.","parameters":{"type":"ob'
        'ject","properties":{}},"strict":false}],"parallel_tool_calls":true,"prompt_cache_options":{"mode":"explicit"'
        ',"ttl":"30m"},"input":[{"type":"message","role":"system","content":[{"type":"input_text","text":"Be brief.",'
        '"prompt_cache_breakpoint":{"mode":"explicit"}}]},{"type":"message","role":"user","content":[{"type":"input_t'
        'ext","text":"What"},{"type":"input_text","text":"is it?","prompt_cache_breakpoint":{"mode":"explicit"}}]},{"'
        'type":"function_call","call_id":"c1","name":"look","arguments":"{}"},{"type":"function_call_output","call_id'
        '":"c1","output":[{"type":"input_text","text":"seen","prompt_cache_breakpoint":{"mode":"explicit"}}]},{"type"'
        ':"message","role":"assistant","content":"A cat."},{"type":"message","role":"user","content":[{"type":"input_'
        'text","text":"And?","prompt_cache_breakpoint":{"mode":"explicit"}}]},{"type":"message","role":"user","conten'
        't":"Cite."}],"tool_choice":"auto"}'
    )


@pytest.mark.parametrize("api", OPENAI)
def test_the_provider_s_own_types_take_breakpoints(api: str):
    TypeAdapter(OPENAI[api]).validate_python(orjson.loads(encoded(CALL, api, cache={"kind": "breakpoints"})))


@pytest.mark.parametrize("api", OPENAI)
@examples(200, few=20)
@given(st.data())
def test_no_breakpoint_of_an_earlier_call_goes_or_moves(api: str, data: st.DataObject):
    member = "messages" if api == "chat_completions" else "input"
    for before, after in pairwise(data.draw(conversations(api))):
        earlier, later = (
            orjson.loads(encoded(call.model_copy(update={"reminder": ""}), api, cache={"kind": "breakpoints"}))[member]
            for call in (before, after)
        )
        assert later[: len(earlier)] == earlier


@pytest.mark.parametrize("api", OPENAI)
@pytest.mark.parametrize("field", ["prompt_cache_options", "prompt_cache_breakpoint"])
def test_a_server_that_knows_no_breakpoints_is_sent_none(api: str, field: str):
    refused = api_of(entry(api, cache={"kind": "breakpoints"})).avoid(400, f"Unknown parameter: '{field}'.".encode())

    assert refused is not None and refused.is_lasting
    assert refused.api.encode(CALL) == encoded(CALL, api)


def moving(turns: int) -> list[tuple[Message, ...]]:
    """Return what each turn sends whose agent's words stand before the newest question."""
    words = (UserMessage(content="Words."), UserMessage(content="Files."), UserMessage(content="Context."))
    asked = [UserMessage(content=f"{turn}?") for turn in range(turns)]
    logged = [message for question in asked for message in (question, AssistantMessage(text="A."))]
    return [(SystemMessage(content="S"), *logged[: 2 * turn], *words, asked[turn]) for turn in range(turns)]


def test_words_that_move_do_not_keep_the_question_before_from_being_written_and_found():
    written: set[tuple[Message, ...]] = set()
    for turn, messages in enumerate(moving(6)):
        ends = [messages[: place + 1] for place in sorted(breakpoint_places(messages))]
        found = [end for end in ends if end in written]
        if turn > 1:
            assert len(found[-1]) == 2 * turn - 2, "all but the last question, and the answer to it"
        written.update(ends[-4:])


def test_empty_messages_get_no_empty_part():
    call = model_call(messages=(UserMessage(content=""), UserMessage(content="Hi")))

    assert orjson.loads(encoded(call, "chat_completions", cache={"kind": "breakpoints"}))["messages"][0] == {
        "role": "user",
        "content": "",
    }


@pytest.mark.parametrize("api", [*OPENAI, "anthropic_messages"])
def test_what_is_usual_for_an_api_leaves_its_bytes_as_they_are(api: str):
    assert encoded(CALL, api, cache={"minimum_tokens": 2_048}) == encoded(CALL, api)


def test_marks_of_an_hour_and_none():
    hour = encoded(CALL, "anthropic_messages", cache={"ttl_seconds": 3_600})
    usual = encoded(CALL, "anthropic_messages")

    assert hour == usual.replace(b'{"type":"ephemeral"}', b'{"type":"ephemeral","ttl":"1h"}')
    assert hour != usual
    assert b"cache_control" not in encoded(CALL, "anthropic_messages", cache={"kind": "automatic"})


@pytest.mark.parametrize(
    ("api", "cache", "rule"),
    [
        ("chat_completions", {}, ("automatic", 1_024, 1, 0.1, 300)),
        ("responses", {"kind": "breakpoints", "ttl_seconds": 43_200}, ("breakpoints", 1_024, 1.25, 0.1, 43_200)),
        ("anthropic_messages", {"minimum_tokens": 4_096}, ("marks", 4_096, 1.25, 0.1, 300)),
        ("anthropic_messages", {"ttl_seconds": 3_600}, ("marks", 1_024, 2, 0.1, 3_600)),
        ("anthropic_messages", {"kind": "automatic", "read_factor": 0.5}, ("automatic", 1_024, 1, 0.5, 300)),
    ],
)
def test_what_is_known_of_a_cache(api: str, cache: dict[str, Any], rule: tuple[Any, ...]):
    assert entry(api, cache=cache).cache_rule == CacheRule(**dict(zip(CacheRule.model_fields, rule, strict=True)))


def test_a_rule_gives_the_prices_that_are_not_given():
    rule = entry("anthropic_messages", cache={}).cache_rule

    assert Prices(input=4, output=1).with_cache(rule) == Prices(input=4, output=1, cached_input=0.4, cache_write=5)
    assert Prices(input=4, output=1, cached_input=3).with_cache(rule).cached_input == 3
    assert Prices(input=4, output=1).with_cache(None) == Prices(input=4, output=1)


def test_each_tenant_has_a_salt_of_its_own():
    salts = {salt_of(SECRET, "a"), salt_of(SECRET, "b"), salt_of("t" * 32, "a"), salt_of(SECRET, "")}
    assert [len(salt) for salt in salts] == [43] * 4


def test_the_secret_of_the_salts_is_not_shown():
    assert SECRET not in repr((entry(cache_salt=SECRET), Endpoint("http://x", cache_salt=SECRET)))


ANSWERED = ModelAnswerEnd(tool_calls=(), finish_reason=FinishReason.STOP, usage=Usage(), answer_id="a1")


def ended(answers: LastAnswers, call: ModelCall, **told: str) -> str:
    with observed((answers.observe,), call) as seen:
        end = seen.pass_on(ANSWERED.model_copy(update=told))
    assert isinstance(end, ModelAnswerEnd)
    return end.cache_diagnosis


def test_a_call_is_compared_with_the_answer_before_of_its_conversation():
    answers, one = LastAnswers(most=2), model_call(conversation_id="c1")

    assert answers.before(one) == ""
    assert ended(answers, one, cache_diagnosis="unchanged") == ""
    assert Endpoint("http://x", last_answers=answers).address(one).compared_with == "a1"
    assert ended(answers, one, answer_id="a2", cache_diagnosis="unchanged") == "unchanged"
    summary = one.model_copy(update={"purpose": Purpose.SUMMARY})
    assert answers.before(summary) == ""
    assert ended(answers, summary, answer_id="s1", cache_diagnosis="unchanged") == ""
    assert answers.before(one) == "a2"
    for other in ("c2", "c3"):
        ended(answers, model_call(conversation_id=other))
    assert answers.before(one) == ""


COMPARED = CALL.model_copy(update={"compared_with": "a1"})
OPENAI_CACHE, ANTHROPIC_CACHE = {"kind": "breakpoints", "diagnostics": True}, {"diagnostics": True}


def test_how_a_provider_is_asked_why_its_cache_was_missed():
    asked = orjson.loads(encoded(COMPARED, "responses", cache=OPENAI_CACHE))
    assert asked["prompt_cache_options"] == {"mode": "explicit", "ttl": "30m", "comparison_response_id": "a1"}
    TypeAdapter(ResponseCreateParamsStreaming).validate_python(asked)
    asked = orjson.loads(encoded(COMPARED, "anthropic_messages", cache=ANTHROPIC_CACHE))
    assert asked["diagnostics"] == {"previous_message_id": "a1"}
    first = orjson.loads(encoded(CALL, "anthropic_messages", cache=ANTHROPIC_CACHE))
    assert first["diagnostics"] == {"previous_message_id": None}
    assert encoded(COMPARED, "anthropic_messages") == encoded(CALL, "anthropic_messages")


@pytest.mark.parametrize(
    ("api", "cache", "field"),
    [
        ("responses", OPENAI_CACHE, "prompt_cache_options.comparison_response_id"),
        ("anthropic_messages", ANTHROPIC_CACHE, "diagnostics"),
    ],
)
def test_a_server_that_says_nothing_of_its_cache_is_not_asked_again(api: str, cache: dict[str, Any], field: str):
    refused = api_of(entry(api, cache=cache)).avoid(400, f"{field}: Extra inputs are not permitted".encode())

    assert refused is not None and refused.is_lasting
    assert refused.api.encode(COMPARED) == encoded(CALL, api, cache=cache | {"diagnostics": False})


def said(api: str, cache: dict[str, Any], *frames: dict[str, Any]) -> ModelAnswerEnd:
    reader = AnswerReader(api_of(entry(api, cache=cache)).assembler(COMPARED))
    for frame in frames:
        _ = list(reader.feed(b"data: %b\n\n" % orjson.dumps(frame)))
    end = list(reader.end())[-1]
    assert isinstance(end, ModelAnswerEnd)
    return end


@pytest.mark.parametrize(
    ("told", "diagnosis"),
    [
        ({}, ""),
        ({"diagnostics": None}, "unchanged"),
        ({"diagnostics": {"cache_miss_reason": None}}, "pending"),
        (
            {"diagnostics": {"cache_miss_reason": {"type": "system_changed", "cache_missed_input_tokens": 9}}},
            "system_changed",
        ),
        ({"diagnostics": {"cache_miss_reason": {"type": "unavailable"}}}, "unavailable"),
        ({"diagnostics": {"cache_miss_reason": {"type": "Your secret is 42"}}}, "other"),
        ({"diagnostics": "?"}, "other"),
    ],
)
def test_what_anthropic_says(told: dict[str, Any], diagnosis: str):
    frames: tuple[dict[str, Any], ...] = (
        {"type": "message_start", "message": {"id": "msg_1", "usage": {}, **told}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )
    end = said("anthropic_messages", ANTHROPIC_CACHE, *frames)
    assert (end.answer_id, end.cache_diagnosis) == ("msg_1", diagnosis)
    assert said("anthropic_messages", {}, *frames).cache_diagnosis == ""


@pytest.mark.parametrize(
    ("told", "diagnosis"),
    [
        (None, ""),
        ({"type": "cache_hit"}, "cache_hit"),
        ({"type": "cache_miss", "reason": "input_changed", "cache_missed_tokens": 9}, "input_changed"),
        ({"type": "comparison_response_not_found"}, "comparison_response_not_found"),
        ({"type": "cache_miss", "reason": 1}, "other"),
        ("?", "other"),
    ],
)
def test_what_openai_says(told: Any, diagnosis: str):
    answer = {"object": "response", "status": "completed", "id": "resp_1", "prompt_cache_diagnostics": told}
    text = {"type": "output_text", "text": "Hi"}
    output = [{"type": "message", "content": [text]}]
    end = said("responses", OPENAI_CACHE, {"type": "response.completed", "response": answer | {"output": output}})
    assert (end.answer_id, end.cache_diagnosis) == ("resp_1", diagnosis)
