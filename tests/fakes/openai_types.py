"""Strict checks of what we emit against the types of the official client and of Open Responses.

Classes are chosen by `type` first: neither package's unions are discriminated for pydantic. The `openai`
types allow extra keys and the client builds them unchecked, so the check forbids what they do not name.
"""

import re
from types import ModuleType
from typing import Any, cast

import openresponses_types
import orjson
from openai.types import conversations as conversation_types
from openai.types import responses as openai_responses
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion_message import Annotation
from openai.types.responses import Response
from openai.types.responses.response_item import McpCall
from pydantic import BaseModel

UNKNOWN_TO_OPENAI = ("store", "presence_penalty", "frequency_penalty")
"""Keys that Open Responses requires and openai's `Response` does not name."""

UNKNOWN_TO_CHAT = ("annotations", "reasoning_content")
"""Keys of a delta that openai's `ChoiceDelta` does not name; of a message it knows the first."""

ITEM_CLASSES: dict[str, type[BaseModel]] = {
    "function_call": openai_responses.ResponseFunctionToolCallItem,
    "function_call_output": openai_responses.ResponseFunctionToolCallOutputItem,
    "custom_tool_call": openai_responses.ResponseCustomToolCallItem,
    "custom_tool_call_output": openai_responses.ResponseCustomToolCallOutputItem,
    "file_search_call": openai_responses.ResponseFileSearchToolCall,
    "mcp_call": McpCall,
    "reasoning": openai_responses.ResponseReasoningItem,
    "compaction": openai_responses.ResponseCompactionItem,
}
OPENAI_EVENT_NAMES = {
    "error": "ResponseErrorEvent",
    "response.output_text.delta": "ResponseTextDeltaEvent",
    "response.output_text.done": "ResponseTextDoneEvent",
}


UNKNOWN_TO_OPEN_RESPONSES = (
    "response.file_search_call",
    "response.reasoning_text",
    "response.mcp_call",
    "response.custom_tool_call",
)

TELL_OF_TOKENS = ("response.output_text.delta", "response.output_text.done")

_OPENAIS = ("mcp_call", "custom_tool_call")
"""Types of items that Open Responses does not know."""


def check_event(body: bytes, *, open_responses: bool = True) -> dict[str, Any]:
    """Check an event's JSON text with both packages; return it decoded.

    What Open Responses cannot express is checked with the official types only.
    """
    event: dict[str, Any] = orjson.loads(body)
    event_type = event["type"]
    name = OPENAI_EVENT_NAMES.get(event_type) or _camel(event_type, "Event")
    flat = {key: value for key, value in event.items() if not (event_type == "error" and key == "error")}
    if "response" in event:
        check_response(event["response"], open_responses=open_responses)
        flat["response"] = _known_to_openai(event["response"])
    if "item" in event:
        flat["item"] = _known_item(event["item"])
    if event_type in TELL_OF_TOKENS:
        # The guide to this API shows `bytes` here, too, which Open Responses wants.
        flat["logprobs"] = [_without_bytes(token) for token in event["logprobs"]]
    _strictly(_class(openai_responses, name), flat)
    is_known = (
        not event_type.startswith(UNKNOWN_TO_OPEN_RESPONSES) and event.get("item", {}).get("type") not in _OPENAIS
    )
    if open_responses and is_known:
        found = _open_responses_class(event_type)
        found.model_validate_json(body, strict=True)
    return event


def _without_bytes(token: dict[str, Any]) -> dict[str, Any]:
    others = {"top_logprobs": [_without_bytes(one) for one in token.get("top_logprobs", [])]}
    return {key: others.get(key, value) for key, value in token.items() if key != "bytes"}


def check_response(body: dict[str, Any], *, open_responses: bool = True) -> None:
    """Check a whole response."""
    _strictly(Response, _known_to_openai(body))
    if open_responses:
        openresponses_types.ResponseResource.model_validate_json(orjson.dumps(body), strict=True)
    for item in body["output"]:
        check_item(item)


def check_joined_event(body: bytes) -> dict[str, Any]:
    """Check an event of a joined response: it is one of OpenAI's, but for our own fields; return it decoded."""
    event: dict[str, Any] = orjson.loads(body)
    plain = {**event}
    if "response" in event:
        check_joined_response(event["response"])
        plain["response"] = _plain_response(event["response"])
    if "item" in event:
        plain["item"] = _plain_item(event["item"])
    check_event(orjson.dumps(plain))
    return event


def check_joined_response(body: dict[str, Any]) -> None:
    """Check a joined response: without our own fields OpenAI's types know it all, and with them they read it."""
    check_response(_plain_response(body))
    read = Response.model_validate_json(orjson.dumps(body), strict=True)
    openresponses_types.ResponseResource.model_validate_json(orjson.dumps(body), strict=True)
    for item in read.output:
        owner = next(lane for lane in body["lanes"] if lane["response_id"] == item.to_dict()["response_id"])
        assert item.to_dict()["model"] == owner["model"]


def _plain_response(body: dict[str, Any]) -> dict[str, Any]:
    output = [_plain_item(item) for item in body["output"]]
    return {**{key: value for key, value in body.items() if key != "lanes"}, "output": output}


def _plain_item(item: dict[str, Any]) -> dict[str, Any]:
    assert item["model"] and item["response_id"]
    return {key: value for key, value in item.items() if key not in ("model", "response_id")}


def check_item(body: dict[str, Any]) -> None:
    """Check an item of a response's output, of a list of input items, or of a conversation."""
    item_class = ITEM_CLASSES.get(body["type"], conversation_types.Message)
    # Our own field: who wrote a message of a shared conversation. The official types take fields that they do not know.
    is_named = body["type"] == "message" and body["role"] == "user" and isinstance(body.get("author"), str)
    _strictly(item_class, {name: value for name, value in body.items() if not (is_named and name == "author")})


def _known_to_openai(body: dict[str, Any]) -> dict[str, Any]:
    output = [_known_item(item) for item in body["output"]]
    return {**{key: value for key, value in body.items() if key not in UNKNOWN_TO_OPENAI}, "output": output}


def _known_item(item: dict[str, Any]) -> dict[str, Any]:
    """Take out the status of a custom tool's call, which OpenAI sends and its class for output items does not name."""
    return {key: value for key, value in item.items() if item["type"] != "custom_tool_call" or key != "status"}


def _strictly(model: type[BaseModel], value: dict[str, Any]) -> None:
    model.model_validate_json(orjson.dumps(_without_places(value)), strict=True, extra="forbid")


def _without_places(value: Any) -> Any:
    """Take out our own field of citations and results, which stands only where a place is known."""
    if isinstance(value, list):
        return [_without_places(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    known = cast("dict[str, Any]", value)
    is_passage = "filename" in known or "start_index" in known
    return {key: _without_places(each) for key, each in known.items() if not (is_passage and key == "place")}


def _open_responses_class(event_type: str) -> type[BaseModel]:
    name = "ErrorStreamingEvent" if event_type == "error" else _camel(event_type, "StreamingEvent")
    return _class(openresponses_types, name)


def _class(module: ModuleType, name: str) -> type[BaseModel]:
    found: type[BaseModel] = getattr(module, name)
    return found


def _camel(event_type: str, suffix: str) -> str:
    return "".join(word.capitalize() for word in re.split(r"[._]", event_type)) + suffix


def check_completion(body: dict[str, Any]) -> None:
    """Check a whole chat completion."""
    choices = [
        {**choice, "message": _known_to_chat(choice["message"], known=("annotations",))} for choice in body["choices"]
    ]
    _strictly(ChatCompletion, {**body, "choices": choices})


def check_chunk(body: bytes) -> dict[str, Any]:
    """Check the JSON text of a chunk; return it decoded."""
    chunk: dict[str, Any] = orjson.loads(body)
    choices = [{**choice, "delta": _known_to_chat(choice["delta"], known=())} for choice in chunk["choices"]]
    _strictly(ChatCompletionChunk, {**chunk, "choices": choices})
    return chunk


def _known_to_chat(said: dict[str, Any], *, known: tuple[str, ...]) -> dict[str, Any]:
    """Take out what openai's classes do not name: reasoning, and in chunks annotations, which OpenAI sends too."""
    assert isinstance(said.get("reasoning_content", ""), str)
    for annotation in said.get("annotations", ()):
        _strictly(Annotation, annotation)
    found = {key: value for key, value in said.items() if key in known or key not in UNKNOWN_TO_CHAT}
    if not known and "tool_calls" in found:
        found["tool_calls"] = [_known_piece(piece) for piece in found["tool_calls"]]
    return found


def _known_piece(piece: dict[str, Any]) -> dict[str, Any]:
    """Write a piece of a custom tool's call as one of a function's: OpenAI sends it, and its class does not know it."""
    if "custom" not in piece:
        return piece
    assert piece.get("type", "custom") == "custom"
    called = {{"input": "arguments"}.get(key, key): value for key, value in piece["custom"].items()}
    rest = {key: value for key, value in piece.items() if key not in ("custom", "type")}
    return {**rest, "type": "function", "function": called}
