"""The Messages API: the request's bytes, and the shapes in which answers and failures come."""

from dataclasses import replace
from typing import Any

import orjson
import pytest
from inline_snapshot import snapshot

from chat_shell.models.anthropic_messages.assembler import MessageAssembler
from chat_shell.models.anthropic_messages.blocks import fit_call_id
from chat_shell.models.anthropic_messages.encoder import AnthropicMessagesApi, MessagesForm, encode_messages_request
from chat_shell.models.anthropic_messages.thinking import ThinkingMode
from chat_shell.models.ports import (
    CallFragment,
    ModelAnswerEnd,
    ModelCall,
    ModelFragment,
    ReasoningFragment,
    TextFragment,
)
from chat_shell.models.transport.provider_errors import error_of_response
from chat_shell.models.transport.streaming import AnswerReader
from shared.errors import (
    InvalidRequest,
    ModelAuthenticationFailed,
    ModelContextOverflow,
    ModelError,
    ModelProtocolViolated,
    ModelQuotaExhausted,
    ModelRateLimited,
    ModelRequestRejected,
    ModelStreamCut,
    ModelUnavailable,
    ModelUnknownToProvider,
)
from shared.models.events import FinishReason, Usage
from shared.models.execution import NamedToolChoice, ReasoningEffort, Verbosity
from shared.models.messages import (
    AssistantMessage,
    ImageDetail,
    ImagePart,
    OpaqueItem,
    ProviderReasoning,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from shared.prompts.message_order import reminder_text
from tests.fakes.model_calls import asked, model_call, tool

FORM = MessagesForm(max_output_tokens=10_000)
THOUGHT: dict[str, Any] = {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}
REDACTED: dict[str, Any] = {"type": "redacted_thinking", "data": "EmwK"}
KEPT = ProviderReasoning(
    api="anthropic_messages",
    items=(
        OpaqueItem(content=orjson.dumps(THOUGHT).decode()),
        OpaqueItem(content=orjson.dumps(REDACTED).decode(), after_characters=7),
    ),
)
CALL = ToolCall(call_id="toolu_1", name="look", arguments='{"b": 1.0,  "a": 2}')
TALK = (
    SystemMessage(content="Be brief."),
    UserMessage(content="Knowledge bases in scope are now: none."),
    UserMessage(
        content=(
            TextPart(text="What is it?"),
            ImagePart(url="https://x.example/a.png", detail=ImageDetail.LOW),
            ImagePart(url="data:image/png;base64,iVBO", detail=ImageDetail.AUTO),
            TextPart(text=" \n"),
        )
    ),
    AssistantMessage(text="Let me see.", tool_calls=(CALL,), reasoning=KEPT),
    ToolMessage(call_id="toolu_1", content="seen"),
    UserMessage(content="And?"),
)


def body_of(call: ModelCall, form: MessagesForm = FORM) -> dict[str, Any]:
    return orjson.loads(encode_messages_request(call, form))


def test_a_whole_conversation_in_bytes():
    call = model_call(messages=TALK, stored=5, tools=(tool("look"),))

    assert encode_messages_request(call, FORM).decode() == snapshot(
        '{"model":"fake-model","stream":true,"tools":[{"name":"look","description":"The tool look.","input_sc'
        'hema":{"type":"object","properties":{}}}],"system":[{"type":"text","text":"Be brief.","cache_control'
        '":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"Knowledge base'
        's in scope are now: none."},{"type":"text","text":"What is it?"},{"type":"image","source":{"type":"u'
        'rl","url":"https://x.example/a.png"}},{"type":"image","source":{"type":"base64","media_type":"image/'
        'png","data":"iVBO"}}]},{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature'
        '":"EqQB"},{"type":"text","text":"Let me "},{"type":"redacted_thinking","data":"EmwK"},{"type":"text"'
        ',"text":"see."},{"type":"tool_use","id":"toolu_1","name":"look","input":{"b": 1.0,  "a": 2}}]},{"rol'
        'e":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"seen","cache_control":'
        '{"type":"ephemeral"}},{"type":"text","text":"And?","cache_control":{"type":"ephemeral"}}]}],"tool_ch'
        'oice":{"type":"auto"},"max_tokens":10000}'
    )


def test_a_reminder_ends_the_request_behind_the_last_mark():
    called = TALK[:-1]
    body = body_of(model_call(messages=called, stored=1, reminder="Cite."))
    mark = {"cache_control": {"type": "ephemeral"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "seen", **mark}
    assert body["messages"][-1] == {"role": "user", "content": [result, {"type": "text", "text": "Cite."}]}
    assert body["messages"][:-1] == body_of(model_call(messages=called, stored=1))["messages"][:-1]


def test_an_answer_that_waits_for_its_results_has_thought_whatever_the_reminder():
    thinking = asked(reasoning_effort=ReasoningEffort.HIGH)
    form = replace(FORM, thinking=ThinkingMode.BUDGET)
    untaught = (*TALK[:-3], AssistantMessage(text="", tool_calls=(CALL,)), ToolMessage(call_id="toolu_1", content="s"))
    bodies = [
        body_of(model_call(messages=untaught, parameters=thinking, reminder=reminder), form)
        for reminder in ("", "Cite.")
    ]
    stays = UserMessage(content=reminder_text(("Cite.",)))
    bodies.append(body_of(model_call(messages=(*untaught, stays), parameters=thinking), form))
    assert [body["thinking"] for body in bodies] == [{"type": "disabled"}] * 3


def test_arguments_go_back_as_the_model_wrote_them():
    assert b'"input":{"b": 1.0,  "a": 2}' in encode_messages_request(model_call(messages=TALK), FORM)


@pytest.mark.parametrize("arguments", ["", "[1]", '{"a":', "7"])
def test_arguments_that_are_no_object(arguments: str):
    broken = AssistantMessage(text="", tool_calls=(CALL.model_copy(update={"arguments": arguments}),))
    _, said = body_of(model_call(messages=(broken,)))["messages"]

    assert said["content"][0]["input"] == {"INVALID_JSON": arguments}


def test_results_of_tools_come_first_in_their_message():
    messages = (
        UserMessage(content="Look."),
        AssistantMessage(text="", tool_calls=(CALL,)),
        UserMessage(content="Quick!"),
        ToolMessage(call_id="toolu_1", content=(TextPart(text="seen"),)),
    )
    last = body_of(model_call(messages=messages))["messages"][-1]

    assert [block["type"] for block in last["content"]] == ["tool_result", "text"]


def test_an_id_of_another_provider_gets_one_that_is_taken_the_same_for_call_and_result():
    assert fit_call_id("toolu_1") == "toolu_1"
    assert fit_call_id("call:1") == fit_call_id("call:1") != fit_call_id("call/1")
    assert fit_call_id("").startswith("call_")


def test_an_empty_answer_leaves_no_message():
    messages = (UserMessage(content="One."), AssistantMessage(text=" \n"), UserMessage(content="Two."))

    assert [len(message["content"]) for message in body_of(model_call(messages=messages))["messages"]] == [2]


@pytest.mark.parametrize(
    ("effort", "expected"),
    [
        (None, (None, None)),
        (ReasoningEffort.NONE, ({"type": "disabled"}, None)),
        (ReasoningEffort.MINIMAL, ({"type": "adaptive"}, {"effort": "low"})),
        (ReasoningEffort.MAX, ({"type": "adaptive"}, {"effort": "max"})),
    ],
)
def test_efforts(effort: ReasoningEffort | None, expected: tuple[Any, Any]):
    body = body_of(model_call(parameters=asked(reasoning_effort=effort)))

    assert (body.get("thinking"), body.get("output_config")) == expected
    assert body["max_tokens"] == 10_000


@pytest.mark.parametrize(
    ("max_tokens", "expected"),
    [(10_000, {"type": "enabled", "budget_tokens": 5_000}), (1_024, {"type": "disabled"})],
)
def test_efforts_as_budgets(max_tokens: int, expected: dict[str, Any]):
    parameters = asked(reasoning_effort=ReasoningEffort.MEDIUM, max_output_tokens=max_tokens)
    form = MessagesForm(max_output_tokens=1, thinking=ThinkingMode.BUDGET)

    assert body_of(model_call(parameters=parameters), form)["thinking"] == expected


def test_no_thinking_where_the_api_would_refuse_it():
    parameters = asked(reasoning_effort=ReasoningEffort.HIGH)
    forced = parameters.model_copy(update={"tool_choice": NamedToolChoice(name="look")})
    budget = MessagesForm(max_output_tokens=10_000, thinking=ThinkingMode.BUDGET)
    silent = (UserMessage(content="Hi"), AssistantMessage(text="", tool_calls=(CALL,)), TALK[4])

    assert body_of(model_call(tools=(tool("look"),), parameters=forced))["thinking"] == {"type": "disabled"}
    assert body_of(model_call(messages=silent, parameters=parameters), budget)["thinking"] == {"type": "disabled"}
    assert body_of(model_call(messages=TALK[:-1], parameters=parameters), budget)["thinking"]["type"] == "enabled"


@pytest.mark.parametrize(
    ("choice", "parallel", "expected"),
    [
        ("auto", True, {"type": "auto"}),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("none", False, {"type": "none"}),
        ("required", True, {"type": "any"}),
        (NamedToolChoice(name="look"), True, {"type": "tool", "name": "look"}),
    ],
)
def test_tool_choices(choice: Any, parallel: bool, expected: dict[str, Any]):
    parameters = asked(tool_choice=choice, parallel_tool_calls=parallel)

    assert body_of(model_call(tools=(tool("look"),), parameters=parameters))["tool_choice"] == expected


def test_a_schema_for_the_answer():
    schema: dict[str, Any] = {"type": "object", "properties": {"b": {}, "a": {}}}
    parameters = asked(text_format={"type": "json_schema", "name": "n", "schema": schema})

    assert body_of(model_call(parameters=parameters))["output_config"] == {
        "format": {"type": "json_schema", "schema": schema}
    }


def test_stop_sequences_have_a_name_of_their_own():
    assert body_of(model_call(parameters=asked(stop=("END", "."))))["stop_sequences"] == ["END", "."]
    assert "stop_sequences" not in body_of(model_call())


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"presence_penalty": 1.0}, "presence_penalty"),
        ({"frequency_penalty": -1.0}, "frequency_penalty"),
        ({"temperature": 1.5}, "temperature"),
        ({"seed": 0}, "seed"),
        ({"verbosity": Verbosity.LOW}, "text.verbosity"),
        ({"text_format": {"type": "json_object"}}, "text.format.type"),
    ],
)
def test_a_parameter_that_the_api_does_not_have(changes: dict[str, Any], param: str):
    with pytest.raises(InvalidRequest) as caught:
        body_of(model_call(parameters=asked(**changes)))

    assert caught.value.param == param


@pytest.mark.parametrize("url", ["data:image/bmp;base64,AAAA", "data:image/png,raw", "ftp://x/a.png"])
def test_an_image_that_the_api_does_not_take(url: str):
    message = UserMessage(content=(ImagePart(url=url, detail=ImageDetail.AUTO),))
    with pytest.raises(InvalidRequest, match="JPEG"):
        body_of(model_call(messages=(message,)))


def test_what_the_model_refuses_is_sent_otherwise():
    api = AnthropicMessagesApi(FORM)
    call = model_call(messages=TALK, parameters=asked(reasoning_effort=ReasoningEffort.LOW))
    mode = api.avoid(400, b'{"error":{"message":"adaptive thinking is not supported on this model"}}')
    blocks = api.avoid(400, b'{"error":{"message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}')

    assert mode is not None and blocks is not None
    assert (mode.is_lasting, blocks.is_lasting) == (True, False)
    assert b'"budget_tokens":2000' in mode.api.encode(call)
    assert b"EqQB" not in blocks.api.encode(call)
    assert b'"thinking":{"type":"disabled"}' in blocks.api.encode(call)
    assert api.avoid(400, b'{"error":{"message":"max_tokens: too large"}}') is None
    assert api.headers("k") == {"anthropic-version": "2023-06-01", "x-api-key": "k"}


def frame(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **fields}))


def delta(index: int, **fields: Any) -> bytes:
    return frame("content_block_delta", index=index, delta=fields)


def begun(index: int, **fields: Any) -> bytes:
    return frame("content_block_start", index=index, content_block=fields)


def stopped(index: int) -> bytes:
    return frame("content_block_stop", index=index)


def ended(reason: str | None = "end_turn", **usage: int) -> bytes:
    given = frame("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
    return given + frame("message_stop")


START = frame(
    "message_start",
    message={"usage": {"input_tokens": 3, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 7}},
)
SAID = begun(0, type="text", text="") + delta(0, type="text_delta", text="Hi")


def read(*frames: bytes) -> list[ModelFragment]:
    reader = AnswerReader(MessageAssembler())
    fragments = [fragment for each in frames for fragment in reader.feed(each)]
    return [*fragments, *reader.end()]


def end_of(*frames: bytes) -> ModelAnswerEnd:
    end = read(*frames)[-1]
    assert isinstance(end, ModelAnswerEnd)
    return end


def test_an_answer_with_all_its_kinds_of_blocks():
    fragments = read(
        START,
        frame("ping"),
        begun(0, type="thinking", thinking="", signature=""),
        delta(0, type="thinking_delta", thinking="H"),
        delta(0, type="thinking_delta", thinking="m."),
        delta(0, type="signature_delta", signature="EqQB"),
        stopped(0),
        begun(1, type="text", text=""),
        delta(1, type="text_delta", text="Let me "),
        delta(1, type="citations_delta", citation={}),
        stopped(1),
        begun(2, **REDACTED),
        stopped(2),
        begun(3, type="text", text="see."),
        stopped(3),
        begun(4, type="tool_use", id="toolu_1", name="look", input={}),
        delta(4, type="input_json_delta", partial_json=""),
        delta(4, type="input_json_delta", partial_json='{"b": 1.0, '),
        delta(4, type="input_json_delta", partial_json=' "a": 2}'),
        stopped(4),
        begun(5, type="tool_use", id="toolu_2", name="find", input={}),
        stopped(5),
        frame("something_new", index=9),
        ended("tool_use", output_tokens=9),
    )

    assert fragments[:-1] == [
        ReasoningFragment(text="H"),
        ReasoningFragment(text="m."),
        TextFragment(text="Let me "),
        TextFragment(text="see."),
        *(
            CallFragment(place=0, call_id="toolu_1", name="look", arguments=piece)
            for piece in ("", '{"b": 1.0, ', ' "a": 2}')
        ),
    ]
    assert fragments[-1] == ModelAnswerEnd(
        tool_calls=(CALL, ToolCall(call_id="toolu_2", name="find", arguments="{}")),
        finish_reason=FinishReason.TOOL_CALLS,
        usage=Usage(input_tokens=50, cached_tokens=40, cache_write_tokens=7, output_tokens=9),
        reasoning=KEPT,
    )


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", FinishReason.STOP),
        ("stop_sequence", FinishReason.STOP),
        ("max_tokens", FinishReason.LENGTH),
        ("model_context_window_exceeded", FinishReason.LENGTH),
        ("refusal", FinishReason.CONTENT_FILTER),
        ("a new reason", FinishReason.STOP),
    ],
)
def test_reasons(reason: str, expected: FinishReason):
    assert end_of(START, SAID, ended(reason)).finish_reason is expected


def error(kind: str) -> bytes:
    return frame("error", error={"type": kind, "message": "x"}, request_id="req_1")


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (error("overloaded_error"), ModelUnavailable),
        (error("api_error"), ModelUnavailable),
        (error("timeout_error"), ModelUnavailable),
        (error("rate_limit_error"), ModelRateLimited),
        (error("invalid_request_error"), ModelRequestRejected),
        (error("billing_error"), ModelQuotaExhausted),
        (ended("pause_turn"), ModelStreamCut),
        (delta(7, type="text_delta", text="x"), ModelProtocolViolated),
        (delta(0, type="text_delta", text=7), ModelProtocolViolated),
        (b"", ModelStreamCut),
    ],
)
def test_failures_in_mid_stream(broken: bytes, kind: type[ModelError]):
    fragments: list[ModelFragment] = []
    reader = AnswerReader(MessageAssembler())
    with pytest.raises(ModelError) as caught:
        fragments.extend(reader.feed(START + SAID))
        fragments.extend(reader.feed(broken))
        reader.end()

    assert type(caught.value) is kind
    assert fragments == [TextFragment(text="Hi")]


@pytest.mark.parametrize(
    ("frames", "kind"),
    [
        ((START, ended()), ModelProtocolViolated),
        ((START, ended("model_context_window_exceeded")), ModelContextOverflow),
    ],
)
def test_answers_without_a_word(frames: tuple[bytes, ...], kind: type[ModelError]):
    with pytest.raises(kind):
        read(*frames)


def test_a_block_without_an_end_is_bounded():
    reader = AnswerReader(MessageAssembler())
    piece = delta(0, type="signature_delta", signature="x" * 1_000_000)
    list(reader.feed(begun(0, type="thinking", thinking="")))
    with pytest.raises(ModelProtocolViolated):
        for _ in range(5):
            list(reader.feed(piece))


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (529, "overloaded_error: Overloaded", ModelUnavailable),
        (500, "api_error: Internal", ModelUnavailable),
        (429, "rate_limit_error: Number of requests", ModelRateLimited),
        (402, "billing_error: pay", ModelQuotaExhausted),
        (400, "invalid_request_error: Your credit balance is too low", ModelQuotaExhausted),
        (400, "invalid_request_error: prompt is too long: 9 tokens > 8 maximum", ModelContextOverflow),
        (400, "invalid_request_error: input and `max_tokens` exceed context limit: 9", ModelContextOverflow),
        (401, "authentication_error: no", ModelAuthenticationFailed),
        (404, "not_found_error: model: x", ModelUnknownToProvider),
        (413, "request_too_large: too many bytes", ModelRequestRejected),
    ],
)
def test_errors_by_status(status: int, words: str, kind: type[ModelError]):
    given, _, message = words.partition(": ")
    body = orjson.dumps({"type": "error", "error": {"type": given, "message": message}})

    found = error_of_response(status, body, None if status != 529 else 3.0)

    assert type(found) is kind
    assert message not in found.message
