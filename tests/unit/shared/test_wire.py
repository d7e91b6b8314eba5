import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.execution.v1 import chat_shell_pb2, events_pb2, request_pb2
from shared.errors import InvalidRequest
from shared.models.events import (
    ErrorReport,
    ExecutionEvent,
    MessagesAdded,
    ModelCallStarted,
    ModelCard,
    SearchStarted,
    TextDelta,
)
from shared.models.execution import AccessMode, ExecutionRequest
from shared.models.json_text import encode_json
from shared.models.messages import AssistantMessage
from shared.models.served_tools import OfferedTools
from shared.models.single_tools import SingleToolCall, SingleToolResult, call_from_body, call_to_body
from shared.models.values import JsonObject
from shared.wire import (
    card_from_proto,
    card_to_proto,
    event_from_proto,
    event_to_proto,
    offered_from_proto,
    offered_to_proto,
    report_from_proto,
    report_to_proto,
    request_from_proto,
    request_to_proto,
    tool_call_from_proto,
    tool_call_to_proto,
    tool_result_from_proto,
    tool_result_to_proto,
)
from tests.examples import examples
from tests.fakes.chat_shell_requests import full_request
from tests.strategies import (
    error_reports,
    execution_events,
    execution_requests,
    json_objects,
    model_cards,
    offered_tools,
)

RequestMessage = request_pb2.ExecutionRequest


@examples(60)
@given(execution_requests())
def test_a_request_survives_the_wire(request: ExecutionRequest):
    sent = request_to_proto(request).SerializeToString()
    assert request_from_proto(RequestMessage.FromString(sent)) == request


@examples(20)
@given(execution_requests(), json_objects())
def test_a_call_of_a_tool_survives_both_wires(turn: ExecutionRequest, arguments: JsonObject):
    call = SingleToolCall(turn=turn, tool="knowledge_base_search", arguments=arguments)
    sent = tool_call_to_proto(call).SerializeToString()
    assert tool_call_from_proto(chat_shell_pb2.RunToolRequest.FromString(sent)) == call
    assert call_from_body(call.tool, json.loads(encode_json(call_to_body(call)))) == call


@given(json_objects() | st.none())
def test_a_result_of_a_tool_survives_both_wires(structured: JsonObject | None):
    result = SingleToolResult(text="说", failed=structured is None, structured=structured)
    sent = tool_result_to_proto(result).SerializeToString()
    assert tool_result_from_proto(chat_shell_pb2.RunToolResponse.FromString(sent)) == result
    assert SingleToolResult.model_validate_json(encode_json(result.model_dump())) == result


def test_a_malformed_call_of_a_tool_is_refused_by_its_place():
    message = tool_call_to_proto(SingleToolCall(turn=full_request(), tool="t", arguments={}))
    message.arguments = "[]"
    with pytest.raises(InvalidRequest) as refused:
        tool_call_from_proto(message)
    assert refused.value.param == "arguments"
    with pytest.raises(InvalidRequest) as refused:
        tool_call_from_proto(chat_shell_pb2.RunToolRequest(tool="t"))
    assert refused.value.param == "turn"
    body = call_to_body(SingleToolCall(turn=full_request(), tool="t", arguments={}))
    with pytest.raises(InvalidRequest) as refused:
        call_from_body("t", {**body, "turn": {"model": 1}})
    assert (refused.value.param or "").startswith("turn.")
    with pytest.raises(InvalidRequest) as refused:
        call_from_body("t", {**body, "more": 1})
    assert refused.value.param == "more"


@examples(200)
@given(execution_events())
def test_an_event_survives_the_wire(event: ExecutionEvent):
    sent = event_to_proto(event).SerializeToString()
    received = event_from_proto(events_pb2.ExecutionEvent.FromString(sent))
    # Their JSON tells true from 1 and 1 from 1.0, which are equal values.
    assert (received, received.model_dump_json()) == (event, event.model_dump_json())


@given(offered_tools())
def test_what_tool_servers_offer_survives_the_wire(offered: OfferedTools):
    sent = offered_to_proto(offered).SerializeToString()
    assert offered_from_proto(chat_shell_pb2.ListToolsResponse.FromString(sent)) == offered


@given(model_cards())
def test_a_card_survives_the_wire(card: ModelCard):
    sent = card_to_proto(card).SerializeToString()
    assert card_from_proto(chat_shell_pb2.ModelCard.FromString(sent)) == card


@given(error_reports())
def test_a_report_survives_the_wire(report: ErrorReport):
    sent = report_to_proto(report).SerializeToString()
    assert report_from_proto(events_pb2.ErrorReport.FromString(sent)) == report


def test_the_order_of_keys_in_json_objects_is_kept():
    received = request_from_proto(request_to_proto(full_request()))
    assert list(received.tools[0].parameters or {}) == ["type", "properties", "required"]


def test_an_access_mode_that_is_missing_is_restricted():
    message = request_to_proto(full_request())
    message.knowledge.ClearField("access_mode")
    message.knowledge.bases[0].ClearField("access_mode")
    knowledge = request_from_proto(message).knowledge
    assert knowledge.access_mode is AccessMode.RESTRICTED
    assert knowledge.bases[0].access_mode is AccessMode.RESTRICTED


def test_words_of_the_user_that_are_missing_are_none():
    message = request_to_proto(full_request())
    message.knowledge.ClearField("user_words")
    assert request_from_proto(message).knowledge.user_words == ""


def test_a_base_without_an_access_mode_makes_the_whole_turn_restricted():
    message = request_to_proto(full_request())
    message.knowledge.access_mode = request_pb2.ACCESS_MODE_FULL
    message.knowledge.bases[1].ClearField("access_mode")
    assert request_from_proto(message).knowledge.access_mode is AccessMode.RESTRICTED


def clear(field: str) -> Callable[[RequestMessage], None]:
    return lambda message: message.ClearField(field)  # pyright: ignore[reportArgumentType]


def set_field(path: str, value: Any) -> Callable[[RequestMessage], None]:
    def change(message: Any) -> None:
        *parents, last = path.split(".")
        for step in parents:
            message = message[int(step)] if step.isdecimal() else getattr(message, step)
        setattr(message, last, value)

    return change


def drop_content(message: RequestMessage) -> None:
    message.history[2].tool.ClearField("content")


def empty_part(message: RequestMessage) -> None:
    message.prompt.parts.parts[0].ClearField("text")


def add_empty_message(message: RequestMessage) -> None:
    message.history.add()


def lift_the_restriction(message: RequestMessage) -> None:
    message.knowledge.access_mode = message.knowledge.bases[1].access_mode = request_pb2.ACCESS_MODE_FULL


def repeat_a_tool(message: RequestMessage) -> None:
    message.tools.append(message.tools[0])


@pytest.mark.parametrize(
    ("change", "param"),
    [
        (clear("user"), "user"),
        (clear("parameters"), "parameters"),
        (clear("knowledge"), "knowledge"),
        (clear("limits"), "limits"),
        (clear("sent_at"), "sent_at"),
        (clear("deadline"), "deadline"),
        (set_field("sent_at.seconds", 10**15), "sent_at"),
        (set_field("epoch", -1), "epoch"),
        (set_field("limits.max_knowledge_calls", -1), "limits.max_knowledge_calls"),
        (set_field("limits.max_model_calls", 0), "limits.max_model_calls"),
        (set_field("knowledge.access_mode", 7), "knowledge.access_mode"),
        (set_field("knowledge.access_mode", 2), "knowledge.access_mode"),
        (set_field("knowledge.bases.1.access_mode", 7), "knowledge.bases[1].access_mode"),
        (lift_the_restriction, "knowledge.user_words"),
        (set_field("parameters.temperature", float("nan")), "parameters.temperature"),
        (set_field("parameters.reasoning_effort", 99), "parameters.reasoning_effort"),
        (set_field("parameters.verbosity", 99), "parameters.verbosity"),
        (set_field("parameters.text_format", "[1]"), "parameters.text_format"),
        (set_field("parameters.tool_choice.mode", 0), "parameters.tool_choice"),
        (set_field("tools.0.parameters", '{"maximum": NaN}'), "tools[0].parameters"),
        (set_field("tools.0.parameters", '{"title": "\\ud800"}'), "tools[0].parameters.title"),
        (set_field("prompt.parts.parts.1.image.detail", 0), "prompt[1].detail"),
        (empty_part, "prompt[0]"),
        (drop_content, "history[2].content"),
        (add_empty_message, "history[6]"),
        (repeat_a_tool, "tools"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(change: Callable[[RequestMessage], None], param: str):
    message = request_to_proto(full_request())
    change(message)
    with pytest.raises(InvalidRequest) as refusal:
        request_from_proto(message)
    assert refusal.value.param == param


def test_a_prompt_may_be_missing_only_behind_what_else_is_sent():
    message = request_to_proto(full_request())
    message.ClearField("prompt")
    assert request_from_proto(message).prompt is None
    message.system_prompt = ""
    message.ClearField("history")
    with pytest.raises(InvalidRequest) as refusal:
        request_from_proto(message)
    assert refusal.value.param == "prompt"


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"system_prompt": "\ud800"}, "system_prompt"),
        ({"history": (AssistantMessage(text="\udfff"),)}, "history[0].text"),
        ({"time_zone": "\ud800"}, "time_zone"),
    ],
)
def test_a_lone_surrogate_is_refused_by_its_place(changes: dict[str, Any], param: str):
    request = full_request().model_copy(update=changes)
    with pytest.raises(InvalidRequest) as refusal:
        request_to_proto(request)
    assert refusal.value.param == param


@pytest.mark.parametrize(
    ("event", "param"),
    [
        (TextDelta(text="\ud800"), "text"),
        (SearchStarted(call_id="c", queries=("a", "\ud800")), "queries[1]"),
        (ModelCallStarted(call=2**63), None),
    ],
)
def test_an_event_that_cannot_be_written_is_refused(event: ExecutionEvent, param: str | None):
    with pytest.raises(InvalidRequest) as refusal:
        event_to_proto(event)
    assert refusal.value.param == param


def test_an_event_of_no_known_kind_is_refused():
    with pytest.raises(InvalidRequest):
        event_from_proto(events_pb2.ExecutionEvent())


def test_a_turn_adds_no_user_message():
    message = event_to_proto(MessagesAdded(messages=()))
    message.messages_added.messages.add().user.content.text = "x"
    with pytest.raises(InvalidRequest) as refusal:
        event_from_proto(message)
    assert refusal.value.param == "messages[0]"
