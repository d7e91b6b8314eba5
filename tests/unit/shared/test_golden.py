import json
from pathlib import Path
from typing import get_args

import pytest
from pydantic import TypeAdapter

from protos.execution.v1 import chat_shell_pb2, events_pb2, request_pb2
from shared.models.events import (
    Cost,
    ExecutionEvent,
    FinishReason,
    FunctionCallDelta,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    ServedCallFinished,
    ServedCallStarted,
    TextLogprobs,
    TurnHandedBack,
    Usage,
)
from shared.models.execution import ExecutionRequest, Purpose, ServedTool, ToolDefinition
from shared.models.messages import AssistantMessage, OpaqueItem, ProviderReasoning, UserMessage
from shared.models.openai_converter import OpenAIRequestConverter
from shared.models.single_tools import SingleToolCall, SingleToolResult, call_from_body, call_to_body
from shared.models.values import JsonObject
from shared.wire import (
    event_from_proto,
    event_to_proto,
    request_from_proto,
    request_to_proto,
    tool_call_from_proto,
    tool_call_to_proto,
    tool_result_from_proto,
    tool_result_to_proto,
)
from tests.fakes.chat_shell_events import EVERY_EVENT
from tests.fakes.chat_shell_requests import full_request

GOLDEN = Path(__file__).parents[2] / "golden" / "execution_v1"
EVENTS: TypeAdapter[ExecutionEvent] = TypeAdapter(ExecutionEvent)
EVENT_FILES = [f"event_{index:02}_{event.type}" for index, event in enumerate(EVERY_EVENT)]


def before_stop() -> ExecutionRequest:
    """The full request as it was before seed and stop sequences were in it."""
    request = full_request()
    return request.model_copy(update={"parameters": request.parameters.model_copy(update={"seed": None, "stop": ()})})


def before_user_words() -> ExecutionRequest:
    """The full request as it was before that, without the user's words."""
    request = before_stop()
    return request.model_copy(update={"knowledge": request.knowledge.model_copy(update={"user_words": ""})})


def before_verbosity() -> ExecutionRequest:
    """The full request as it was before that, without the wanted verbosity."""
    request = before_user_words()
    return request.model_copy(update={"parameters": request.parameters.model_copy(update={"verbosity": None})})


def handed_back() -> ExecutionRequest:
    """A turn that goes on: with a message of the user that came meanwhile, a reminder and a limit of its prompt."""
    request = full_request()
    limits = request.limits.model_copy(update={"hand_back_tokens": 90_000})
    behind = (*request.added, UserMessage(content="And in 2027?"))
    return request.model_copy(update={"added": behind, "reminder": "Answer in verse.", "limits": limits})


def with_served_tool() -> ExecutionRequest:
    """The full request with a tool of a tool server."""
    parameters: JsonObject = {"type": "object", "properties": {"jql": {"type": "string"}}}
    definition = ToolDefinition(name="jira__search", description="Search.", parameters=parameters, strict=None)
    served = ServedTool(definition=definition, server="jira", tool="search", accepts_restricted=True)
    return full_request().model_copy(update={"served_tools": (served,)})


def with_extra() -> ExecutionRequest:
    """The full request with parameters that the provider alone knows."""
    extra: JsonObject = {"top_k": 5, "chat_template_kwargs": {"thinking": False, "b": None, "a": [1.5, "冷却"]}}
    request = full_request()
    return request.model_copy(update={"parameters": request.parameters.model_copy(update={"extra": extra})})


REQUESTS = {
    "request": before_verbosity(),
    "request_verbosity": before_user_words(),
    "request_user_words": before_stop(),
    "request_stop": full_request(),
    "request_handed_back": handed_back(),
    "request_served_tools": with_served_tool(),
    "request_summary": full_request().model_copy(update={"purpose": Purpose.SUMMARY}),
    "request_reads_files": full_request().model_copy(update={"reads_files": True}),
    "request_extra": with_extra(),
}

KEPT = ProviderReasoning(
    api="responses", items=(OpaqueItem(content='{"type":"reasoning"}', after_characters=2, after_calls=1),)
)
LATER_EVENTS: dict[str, ExecutionEvent] = {
    "event_reasoning": MessagesAdded(messages=(AssistantMessage(text="Well.", reasoning=KEPT),)),
    "event_reminder": ModelCallStarted(call=2, reminder="<system-reminder>\nCite.\n</system-reminder>"),
    "event_served_call_started": ServedCallStarted(call_id="call_1", server="jira", tool="search", arguments="{}"),
    "event_served_call_finished": ServedCallFinished(call_id="call_1", output="Zwölf.", failed=True),
    "event_function_call_delta": FunctionCallDelta(call_id="call_2", name="weather", arguments='{"city": "Kö'),
    "event_text_logprobs": TextLogprobs(
        tokens='[{"token":"Zwö","logprob":-0.25,"bytes":[90,119,195,182],"top_logprobs":[]}]'
    ),
    "event_handed_back": TurnHandedBack(prompt_tokens=90_001, usage=Usage(input_tokens=3)),
    "event_cost": ModelCallFinished(
        call=1,
        finish_reason=FinishReason.STOP,
        usage=Usage(input_tokens=3),
        cost=Cost(currency="EUR", amount=0.25, saved=0.5),
    ),
}
ALL_EVENTS = dict(zip(EVENT_FILES, EVERY_EVENT, strict=True)) | LATER_EVENTS


@pytest.mark.parametrize("name", REQUESTS)
def test_yesterdays_request_is_still_read(name: str):
    received = request_pb2.ExecutionRequest.FromString((GOLDEN / f"{name}.binpb").read_bytes())
    assert request_from_proto(received) == REQUESTS[name]


@pytest.mark.parametrize("name", REQUESTS)
def test_yesterdays_body_is_still_read(name: str):
    body = json.loads((GOLDEN / f"{name}.json").read_bytes())
    assert OpenAIRequestConverter.to_execution_request(body) == REQUESTS[name]


@pytest.mark.parametrize(("name", "event"), ALL_EVENTS.items())
def test_yesterdays_events_are_still_read(name: str, event: ExecutionEvent):
    received = events_pb2.ExecutionEvent.FromString((GOLDEN / f"{name}.binpb").read_bytes())
    assert event_from_proto(received) == event
    assert EVENTS.validate_json((GOLDEN / f"{name}.json").read_bytes(), strict=True) == event


def test_today_the_same_bytes_are_written():
    for name, request in REQUESTS.items():
        assert request_to_proto(request).SerializeToString() == (GOLDEN / f"{name}.binpb").read_bytes()
    for name, event in ALL_EVENTS.items():
        assert event.model_dump_json().encode() == (GOLDEN / f"{name}.json").read_bytes().strip()
        assert event_to_proto(event).SerializeToString() == (GOLDEN / f"{name}.binpb").read_bytes()


TOOL_CALL = SingleToolCall(turn=full_request(), tool="knowledge_base_search", arguments={"query": "储备 rules"})
TOOL_RESULT = SingleToolResult(text="What 可说", failed=False, structured={"decision": "answer", "risks": ["one"]})


def test_calls_of_tools_and_their_results_are_still_read_and_written_alike():
    call, result = ((GOLDEN / f"run_tool_{kind}.binpb").read_bytes() for kind in ("request", "response"))
    assert tool_call_from_proto(chat_shell_pb2.RunToolRequest.FromString(call)) == TOOL_CALL
    assert tool_result_from_proto(chat_shell_pb2.RunToolResponse.FromString(result)) == TOOL_RESULT
    assert tool_call_to_proto(TOOL_CALL).SerializeToString() == call
    assert tool_result_to_proto(TOOL_RESULT).SerializeToString() == result
    body, answer = ((GOLDEN / f"run_tool_{kind}.json").read_bytes() for kind in ("request", "response"))
    assert call_from_body(TOOL_CALL.tool, json.loads(body)) == TOOL_CALL
    assert SingleToolResult.model_validate_json(answer) == TOOL_RESULT
    assert call_to_body(TOOL_CALL) == json.loads(body)


def test_no_kind_of_event_is_forgotten():
    kinds = get_args(get_args(ExecutionEvent)[0])
    assert {type(event) for event in ALL_EVENTS.values()} == set(kinds)
