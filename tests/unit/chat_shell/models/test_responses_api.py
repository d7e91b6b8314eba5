"""The Responses API: the request's bytes, and the shapes in which answers and failures come."""

from typing import Any, get_args

import orjson
import pytest
from inline_snapshot import snapshot
from openai.types.responses import ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from chat_shell.models.ports import ModelAnswerEnd, ModelFragment, ReasoningFragment, RefusalFragment, TextFragment
from chat_shell.models.responses.assembler import ResponseAssembler
from chat_shell.models.responses.encoder import encode_response_request
from chat_shell.models.responses.model import ResponsesApi
from chat_shell.models.transport.streaming import AnswerReader
from shared.errors import (
    InvalidRequest,
    ModelError,
    ModelProtocolViolated,
    ModelRateLimited,
    ModelRequestRejected,
    ModelStreamCut,
    ModelUnavailable,
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
from tests.fakes.model_calls import asked, model_call, tool
from tests.fakes.model_server import RecordedRequest, Reply, ScriptedCall, responses_frames

REASONING: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
KEPT = ProviderReasoning(
    api="responses",
    items=(
        OpaqueItem(content=orjson.dumps(REASONING).decode()),
        OpaqueItem(content='{"phase":"commentary"}'),
    ),
)
TALK = (
    SystemMessage(content="Be brief."),
    UserMessage(content=(TextPart(text="What is it?"), ImagePart(url="data:x", detail=ImageDetail.LOW))),
    AssistantMessage(
        text="Let me see.",
        tool_calls=(ToolCall(call_id="c1", name="look", arguments='{"a": 1}'),),
        reasoning=KEPT,
    ),
    ToolMessage(call_id="c1", content="seen"),
    UserMessage(content="And?"),
)


def test_a_whole_conversation_in_bytes():
    call = model_call(messages=TALK, tools=(tool("look"),), parameters=asked(reasoning_effort=ReasoningEffort.LOW))

    assert encode_response_request(call).decode() == snapshot(
        '{"model":"fake-model","prompt_cache_key":"key_1","stream":true,"store":false,"include":["reasoning.e'
        'ncrypted_content"],"instructions":"Be brief.","tools":[{"type":"function","name":"look","description'
        '":"The tool look.","parameters":{"type":"object","properties":{}},"strict":false}],"parallel_tool_ca'
        'lls":true,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"What is i'
        't?"},{"type":"input_image","image_url":"data:x","detail":"low"}]},{"type":"reasoning","id":"rs_1","s'
        'ummary":[],"encrypted_content":"gAAA"},{"type":"message","role":"assistant","content":"Let me see.",'
        '"phase":"commentary"},{"type":"function_call","call_id":"c1","name":"look","arguments":"{\\"a\\": 1}"}'
        ',{"type":"function_call_output","call_id":"c1","output":"seen"},{"type":"message","role":"user","con'
        'tent":"And?"}],"tool_choice":"auto","reasoning":{"effort":"low"}}'
    )


def test_the_provider_s_own_types_take_the_request():
    parameters = asked(
        temperature=0.5,
        max_output_tokens=9,
        reasoning_effort=ReasoningEffort.HIGH,
        verbosity=Verbosity.LOW,
        tool_choice=NamedToolChoice(name="look"),
        text_format={"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True},
        presence_penalty=0.0,
    )
    call = model_call(messages=TALK, tools=(tool("look", {"type": "object"}),), parameters=parameters)

    TypeAdapter(ResponseCreateParamsStreaming).validate_python(orjson.loads(encode_response_request(call)))


def test_what_another_provider_wanted_back_is_not_sent():
    foreign = KEPT.model_copy(update={"api": "anthropic_messages"})
    messages = (UserMessage(content="Hi"), AssistantMessage(text="Hello.", reasoning=foreign), UserMessage(content="?"))

    assert b"gAAA" not in encode_response_request(model_call(messages=messages))


@pytest.mark.parametrize(
    ("name", "value"), [("presence_penalty", 0.5), ("frequency_penalty", 0.5), ("seed", 0), ("stop", ("END",))]
)
def test_a_parameter_that_the_api_does_not_have(name: str, value: Any):
    with pytest.raises(InvalidRequest) as caught:
        encode_response_request(model_call(parameters=asked(**{name: value})))

    assert caught.value.param == name


def test_a_refused_field_is_left_out_for_good_and_unreadable_reasoning_once():
    api = ResponsesApi()
    refused = api.avoid(400, b'{"error":{"message":"Encrypted content is not supported","param":"include"}}')
    unreadable = api.avoid(400, b'{"error":{"code":"invalid_encrypted_content","message":"no"}}')

    assert refused is not None and unreadable is not None
    assert (refused.is_lasting, unreadable.is_lasting) == (True, False)
    assert b'"include"' not in refused.api.encode(model_call(messages=TALK))
    assert b"gAAA" not in unreadable.api.encode(model_call(messages=TALK))
    assert unreadable.api.avoid(400, b"invalid_encrypted_content") is None
    assert api.avoid(400, b'{"error":{"message":"bad input"}}') is None


def frame(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **fields}))


def ended(status: str = "completed", **fields: Any) -> bytes:
    kind = {"failed": "response.failed", "incomplete": "response.incomplete"}.get(status, "response.completed")
    return frame(kind, response={"object": "response", "status": status, "output": [], **fields})


def read(*frames: bytes) -> list[ModelFragment]:
    reader = AnswerReader(ResponseAssembler())
    fragments = [fragment for each in frames for fragment in reader.feed(each)]
    return [*fragments, *reader.end()]


def end_of(*frames: bytes) -> ModelAnswerEnd:
    end = read(*frames)[-1]
    assert isinstance(end, ModelAnswerEnd)
    return end


SAID = frame("response.output_text.delta", delta="Hi", output_index=0, content_index=0)


def test_an_answer_with_all_its_kinds_of_parts():
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a": 1}'}
    fragments = read(
        frame("response.created", response={}),
        frame("response.reasoning_summary_text.delta", delta="Think", output_index=0),
        frame("response.reasoning_summary_part.added", summary_index=1, output_index=0),
        frame("response.reasoning_summary_text.delta", delta="again", output_index=0),
        frame("response.output_item.done", output_index=0, item={**REASONING, "status": None}),
        frame("response.output_item.added", output_index=1, item={"type": "message", "phase": "commentary"}),
        frame("response.output_text.delta", delta="Hi", output_index=1),
        frame("keepalive", sequence_number=3),
        frame("response.refusal.delta", delta="No", output_index=1),
        frame("response.output_item.done", output_index=2, item=call),
        frame("response.output_item.done", output_index=3, item={**REASONING, "id": "rs_2"}),
        ended(
            usage={
                "input_tokens": 9,
                "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
                "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 3},
            }
        ),
    )

    assert fragments[:-1] == [
        ReasoningFragment(text="Think"),
        ReasoningFragment(text="\n\n"),
        ReasoningFragment(text="again"),
        TextFragment(text="Hi"),
        RefusalFragment(text="No"),
    ]
    assert fragments[-1] == ModelAnswerEnd(
        tool_calls=(ToolCall(call_id="c1", name="look", arguments='{"a": 1}'),),
        finish_reason=FinishReason.TOOL_CALLS,
        usage=Usage(input_tokens=9, cached_tokens=4, cache_write_tokens=2, output_tokens=5, reasoning_tokens=3),
        reasoning=ProviderReasoning(
            api="responses",
            items=(
                *KEPT.items,
                OpaqueItem(content=KEPT.items[0].content.replace("rs_1", "rs_2"), after_characters=4, after_calls=1),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("max_output_tokens", FinishReason.LENGTH),
        ("content_filter", FinishReason.CONTENT_FILTER),
        ("max_messages", FinishReason.LENGTH),
    ],
)
def test_incomplete_answers(reason: str, expected: FinishReason):
    assert end_of(SAID, ended("incomplete", incomplete_details={"reason": reason})).finish_reason is expected


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (ended("failed", error={"code": "server_error", "message": "x"}), ModelUnavailable),
        (ended("failed", error={"code": "rate_limit_exceeded", "message": "x"}), ModelRateLimited),
        (ended("failed", error={"code": "invalid_prompt", "message": "x"}), ModelRequestRejected),
        (ended("failed", error={"code": "image_too_small", "message": "x"}), ModelRequestRejected),
        (ended("failed", error=None), ModelUnavailable),
        (ended("cancelled"), ModelStreamCut),
        (frame("error", code="rate_limit_exceeded", message="x", param=None), ModelRateLimited),
        (frame("error", error={"type": "server_error", "message": "x"}), ModelUnavailable),
        (frame("response.output_text.delta", delta=7), ModelProtocolViolated),
        (frame("response.completed", response=[]), ModelProtocolViolated),
        (b"", ModelStreamCut),
    ],
)
def test_failures_in_mid_stream(broken: bytes, kind: type[ModelError]):
    fragments: list[ModelFragment] = []
    reader = AnswerReader(ResponseAssembler())
    with pytest.raises(ModelError) as caught:
        fragments.extend(reader.feed(SAID))
        fragments.extend(reader.feed(broken))
        reader.end()

    assert type(caught.value) is kind
    assert fragments == [TextFragment(text="Hi")]


def test_an_empty_answer():
    with pytest.raises(ModelProtocolViolated):
        read(ended())


def test_the_fake_s_events_are_the_provider_s():
    kinds = {
        get_args(member.model_fields["type"].annotation)[0]: member
        for member in get_args(get_args(ResponseStreamEvent)[0])
    }
    request = RecordedRequest(method="POST", path="", headers={}, body=b'{"model":"m"}', connection=0, received_at=0.0)
    reply = Reply(reasoning=("R",), text=("a", "b"), refusal=("c",), tool_calls=(ScriptedCall(name="look"),))
    sent = b"".join(
        [
            responses_frames.role_frame(Reply(), "m"),
            *responses_frames.delta_frames(reply, "m"),
            *responses_frames.end_frames(reply, request),
        ]
    )
    events = [orjson.loads(line[6:]) for line in sent.split(b"\n") if line.startswith(b"data: ")]

    for event in events:
        event.setdefault("item_id", "x") if event["type"].endswith("delta") else None
        kinds[event["type"]].model_validate(event)
    assert end_of(sent).tool_calls[0].name == "look"
