"""Items in the form that clients receive, which is that of OpenAI's API, with `id` and `status`."""

from collections.abc import Callable, Sequence
from typing import Literal

from backend.conversations.domain.input_items import (
    AssistantItem,
    CustomToolCallItem,
    FunctionCallItem,
    FunctionCallOutputItem,
    InputFilePart,
    InputImagePart,
    InputItem,
    InputPart,
    InputTextPart,
    OutputTextPart,
    RefusalPart,
    SystemItem,
    UserItem,
)
from backend.conversations.domain.responses import ItemBody
from shared.ids import IdPrefix
from shared.models.values import JsonObject

FILE_SEARCH_RESULTS = "file_search_call.results"
OUTPUT_LOGPROBS = "message.output_text.logprobs"

RESPONSE_ID = "response_id"
"""Lists of a conversation's items name the response of each where `include` asks for it: a word of our own."""

Include = Literal[
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
    "response_id",
]

BETWEEN_MESSAGES = "\n\n"
"""Stands between two messages of one turn where a client is shown all of them as one."""

NewId = Callable[[IdPrefix], str]
VisibleItem = UserItem | SystemItem | AssistantItem | FunctionCallItem | CustomToolCallItem | FunctionCallOutputItem
CALLS = frozenset({"function_call", "custom_tool_call"})
"""The types of items that show calls which the client runs."""

RESULTS = {
    "function_call_output": IdPrefix.FUNCTION_CALL_OUTPUT,
    "custom_tool_call_output": IdPrefix.CUSTOM_TOOL_CALL_OUTPUT,
}
"""The types of items that hold what such calls brought, and the prefixes of their ids."""


def user_text_body(text: str, new_id: NewId) -> ItemBody:
    """Return the item body of an input that is a plain string."""
    return _message("user", _input_parts(text), new_id)


def input_bodies(items: Sequence[InputItem], new_id: NewId) -> tuple[ItemBody, ...]:
    """Return the bodies of input items with new ids; reasoning and searches that were sent back are left out."""
    return tuple(_body(item, new_id) for item in items if isinstance(item, VisibleItem))


def without_results(body: ItemBody) -> ItemBody:
    """Return the item of a search without its results; any other item is returned unchanged."""
    return {**body, "results": None} if body.get("type") == "file_search_call" else body


def _body(item: VisibleItem, new_id: NewId) -> ItemBody:
    match item:
        case FunctionCallItem():
            fields = {"call_id": item.call_id, "name": item.name, "arguments": item.arguments}
            return {"id": new_id(IdPrefix.FUNCTION_CALL), "type": item.type, "status": "completed", **fields}
        case CustomToolCallItem():
            fields = {"call_id": item.call_id, "name": item.name, "input": item.input}
            return {"id": new_id(IdPrefix.CUSTOM_TOOL_CALL), "type": item.type, "status": "completed", **fields}
        case FunctionCallOutputItem():
            output = item.output if isinstance(item.output, str) else [_part(part) for part in item.output]
            shown = {"id": new_id(RESULTS[item.type]), "type": item.type, "status": "completed"}
            return {**shown, "call_id": item.call_id, "output": output}
        case AssistantItem():
            return _message(item.role, _output_parts(item.content), new_id)
        case UserItem() | SystemItem():
            return _message(item.role, _input_parts(item.content), new_id)


def _input_parts(content: str | Sequence[InputPart]) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "input_text", "text": content}]
    return [_part(part) for part in content]


def _output_parts(content: str | Sequence[OutputTextPart | RefusalPart]) -> list[JsonObject]:
    if isinstance(content, str):
        return [_part(OutputTextPart(type="output_text", text=content))]
    return [_part(part) for part in content]


def _message(role: str, content: list[JsonObject], new_id: NewId) -> ItemBody:
    return {
        "id": new_id(IdPrefix.MESSAGE),
        "type": "message",
        "status": "completed",
        "role": role,
        "content": content,
    }


def _part(part: InputPart | OutputTextPart | RefusalPart) -> JsonObject:
    match part:
        case InputTextPart():
            return {"type": part.type, "text": part.text}
        case InputImagePart():
            return {"type": part.type, "image_url": part.image_url, "detail": part.detail or "auto"}
        case InputFilePart():
            return {"type": part.type, **part.model_dump(include={"filename", "file_id"}, exclude_none=True)}
        case OutputTextPart():
            return {"type": part.type, "text": part.text, "annotations": [], "logprobs": []}
        case RefusalPart():
            return {"type": part.type, "refusal": part.refusal}
