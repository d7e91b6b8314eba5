"""Which type of the official client each answer must strictly fit, by method and path."""

import re
from typing import Any

import orjson
from openai.types import Model
from openai.types.conversations import Conversation, ConversationDeletedResource
from openai.types.responses import ResponseInputMessageItem, ResponseOutputMessage
from openai.types.shared import ErrorObject
from pydantic import BaseModel

from tests.fakes.openai_types import check_completion, check_item, check_response

CHAT = "/v1/chat/completions"
CREATING = re.compile(r"/v1/conversations(/[^/]+/items)?")
RESPONSE = re.compile(r"/v1/responses(/[^/]+(/cancel)?)?")
CONVERSATION = re.compile(r"/v1/conversations(/[^/]+)?")
ITEM = re.compile(r"/v1/conversations/[^/]+/items/[^/]+")
EFFORTS_UNKNOWN_TO_OPEN_RESPONSES = ("minimal", "max")


def check_answer(method: str, path: str, status: int, body: bytes) -> None:
    """Check a whole answer; an unknown path fails, so that no answer goes unchecked."""
    decoded = orjson.loads(body)
    if status >= 400:
        assert set(decoded) == {"error"}
        assert set(decoded["error"]) == {"message", "type", "param", "code"}
        strictly(ErrorObject, decoded["error"])
        assert decoded["error"]["message"]
        return
    assert status == (201 if method == "POST" and CREATING.fullmatch(path) and _creates(path) else 200)
    if path == CHAT:
        check_completion(decoded)
    else:
        _check_success(method, path, decoded)


def speaks_open_responses(response: dict[str, Any]) -> bool:
    """Tell whether Open Responses can express a response: no search, no schema, no effort that it does not know."""
    kinds = {tool["type"] for tool in response["tools"]} | {item["type"] for item in response["output"]}
    if kinds & {"file_search", "file_search_call"} or response["text"]["format"]["type"] == "json_schema":
        return False
    return (response["reasoning"] or {"effort": None})["effort"] not in EFFORTS_UNKNOWN_TO_OPEN_RESPONSES


def strictly(model: type[BaseModel], value: Any) -> None:
    """Check a value: no conversion, no key that the type does not name."""
    model.model_validate_json(orjson.dumps(value), strict=True, extra="forbid")


def _creates(path: str) -> bool:
    return path == "/v1/conversations" or path.endswith("/items")


def _check_success(method: str, path: str, decoded: Any) -> None:
    if method == "DELETE":
        _check_deleted(path, decoded)
    elif path.endswith(("/items", "/input_items")):
        _check_item_page(decoded, is_input=path.endswith("/input_items"))
    elif path == "/v1/models":
        assert (set(decoded), decoded["object"]) == ({"object", "data"}, "list")
        for model in decoded["data"]:
            strictly(Model, model)
    elif path.startswith("/v1/models/"):
        strictly(Model, decoded)
    elif ITEM.fullmatch(path):
        check_item(decoded)
    elif CONVERSATION.fullmatch(path):
        strictly(Conversation, decoded)
    else:
        assert RESPONSE.fullmatch(path), path
        check_response(decoded, open_responses=speaks_open_responses(decoded))


def _check_deleted(path: str, decoded: Any) -> None:
    if ITEM.fullmatch(path):
        strictly(Conversation, decoded)
    elif path.startswith("/v1/conversations/"):
        strictly(ConversationDeletedResource, decoded)
    else:
        assert decoded == {"id": path.rpartition("/")[2], "object": "response", "deleted": True}


def _check_item_page(page: dict[str, Any], *, is_input: bool) -> None:
    assert set(page) == {"object", "data", "first_id", "last_id", "has_more"}
    assert (page["object"], type(page["has_more"])) == ("list", bool)
    ids = [item["id"] for item in page["data"]]
    assert (page["first_id"], page["last_id"]) == ((ids[0], ids[-1]) if ids else ("", ""))
    for item in page["data"]:
        check_item(item)
        if is_input and item["type"] == "message":
            strictly(ResponseOutputMessage if item["role"] == "assistant" else ResponseInputMessageItem, item)
