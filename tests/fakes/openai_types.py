"""Strict checks of what we emit against the types of the official client and of Open Responses.

Classes are chosen by `type` first: neither package's unions are discriminated for pydantic. The `openai`
types allow extra keys and the client builds them unchecked, so the check forbids what they do not name.
"""

import re
from types import ModuleType
from typing import Any

import openresponses_types
import orjson
from openai.types import conversations as conversation_types
from openai.types import responses as openai_responses
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion_message import Annotation
from openai.types.responses import Response
from pydantic import BaseModel

UNKNOWN_TO_OPENAI = ("store", "presence_penalty", "frequency_penalty")
"""Keys that Open Responses requires and openai's `Response` does not name."""

UNKNOWN_TO_CHAT = ("annotations", "reasoning_content")
"""Keys of a delta that openai's `ChoiceDelta` does not name; of a message it knows the first."""

ITEM_CLASSES: dict[str, type[BaseModel]] = {
    "function_call": openai_responses.ResponseFunctionToolCallItem,
    "function_call_output": openai_responses.ResponseFunctionToolCallOutputItem,
    "file_search_call": openai_responses.ResponseFileSearchToolCall,
    "reasoning": openai_responses.ResponseReasoningItem,
}
OPENAI_EVENT_NAMES = {
    "error": "ResponseErrorEvent",
    "response.output_text.delta": "ResponseTextDeltaEvent",
    "response.output_text.done": "ResponseTextDoneEvent",
}


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
    _strictly(_class(openai_responses, name), flat)
    if open_responses and not event_type.startswith(("response.file_search_call", "response.reasoning_text")):
        found = _open_responses_class(event_type)
        found.model_validate_json(body, strict=True)
    return event


def check_response(body: dict[str, Any], *, open_responses: bool = True) -> None:
    """Check a whole response."""
    _strictly(Response, _known_to_openai(body))
    if open_responses:
        openresponses_types.ResponseResource.model_validate_json(orjson.dumps(body), strict=True)
    for item in body["output"]:
        check_item(item)


def check_item(body: dict[str, Any]) -> None:
    """Check an item of a response's output, of a list of input items, or of a conversation."""
    item_class = ITEM_CLASSES.get(body["type"], conversation_types.Message)
    _strictly(item_class, body)


def _known_to_openai(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in UNKNOWN_TO_OPENAI}


def _strictly(model: type[BaseModel], value: dict[str, Any]) -> None:
    model.model_validate_json(orjson.dumps(value), strict=True, extra="forbid")


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
    return {key: value for key, value in said.items() if key in known or key not in UNKNOWN_TO_CHAT}
