"""Requests about what a turn would send: to count it, or to have it summarised."""

from typing import Annotated, Literal

from pydantic import Field

from backend.conversations.domain.input_items import Given
from backend.conversations.domain.item_steps import INPUT_ITEM, body_cooperatively
from backend.conversations.domain.passed_over import OR_OTHER_KIND, PassedOver
from backend.foundation.domain.json_objects import JsonText, Steps
from backend.openai_api.domain.turn_request import (
    MAX_TOOLS,
    CacheRetention,
    InputBody,
    Key,
    ModelName,
    ReasoningOptions,
    ServiceTier,
    TextOptions,
    Tool,
    TurnFields,
    TurnRequest,
    check_request,
    turn_of,
)
from shared.errors import UnsupportedValue
from shared.models.values import JsonObject


class InputTokensRequest(TurnFields):
    """A turn whose prompt is to be counted; `input` may be absent, which counts what stands before it."""

    input: InputBody | None = None
    personality: Annotated[str, Field(max_length=64)] | None = None


class CompactRequest(Given):
    """A conversation that is to be compacted: what a turn would send, of which nothing is stored."""

    model: ModelName | None = None
    input: InputBody | None = None
    previous_response_id: str | None = None
    instructions: str | None = None
    tools: Annotated[list[Annotated[Tool, OR_OTHER_KIND]], Field(max_length=MAX_TOOLS, fail_fast=True)] | None = None
    parallel_tool_calls: bool | None = None
    reasoning: ReasoningOptions | None = None
    text: TextOptions | None = None
    service_tier: ServiceTier | None = None
    prompt_cache_key: Key | None = None
    prompt_cache_retention: CacheRetention | None = None
    prompt_cache_options: JsonObject | None = None


class SocketRequest(TurnRequest):
    """A turn as a message over a WebSocket asks for it, which is always streamed."""

    type: Literal["response.create"]
    generate: Literal[True] | None = None
    stream_id: None = None


def input_tokens_request_cooperatively(text: JsonText, passed_over: PassedOver | None = None) -> Steps[TurnRequest]:
    """Parse and check the body of a request to count tokens, and return the turn that it asks about.

    `passed_over` is as for a turn.

    Raises:
        InvalidRequest: `param` names the exact field, as for a turn.
        UnsupportedValue: OpenAI's API has this value, and this server does not support it.
    """
    asked = yield from body_cooperatively(InputTokensRequest, text, "input", INPUT_ITEM, passed_over)
    given = {name: getattr(asked, name) for name in TurnFields.model_fields}
    return check_request(turn_of({**given, "input": asked.input or ""}).with_collector(passed_over))


def socket_request_cooperatively(text: JsonText, passed_over: PassedOver | None = None) -> Steps[TurnRequest]:
    """Parse and check a message of a WebSocket, and return the turn that it asks for.

    `passed_over` is as for a turn.

    Raises:
        InvalidRequest: `param` names the exact field, as for a turn.
        UnsupportedValue: OpenAI's API has this value, and this server does not support it.
    """
    asked = yield from body_cooperatively(SocketRequest, text, "input", INPUT_ITEM, passed_over)
    if asked.is_background:
        raise UnsupportedValue("A turn over a WebSocket runs in the foreground; leave this out.", param="background")
    given = {name: getattr(asked, name) for name in TurnRequest.model_fields}
    return check_request(turn_of({**given, "stream": True}).with_collector(passed_over))


def compact_request_cooperatively(text: JsonText, passed_over: PassedOver | None = None) -> Steps[TurnRequest]:
    """Parse and check the body of a request to compact, and return the turn whose prompt is to be summarised.

    Without an input it has none. `passed_over` is as for a turn.

    Raises:
        InvalidRequest: `param` names the exact field, as for a turn.
        UnsupportedValue: OpenAI's API has this value, and this server does not support it.
    """
    asked = yield from body_cooperatively(CompactRequest, text, "input", INPUT_ITEM, passed_over)
    given = {name: getattr(asked, name) for name in CompactRequest.model_fields}
    return check_request(turn_of({**given, "input": asked.input or [], "store": False}))
