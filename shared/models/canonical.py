"""The JSON form of tools and messages in a chat-completions request: equal values make equal bytes.

chat_shell sends this form; the backend compares its bytes with those of the model call before. Reasoning that this API
has given, or a client for it, stands in the members of the message in which it was given.
"""

from collections.abc import Mapping, Sequence

import orjson

from shared.models.execution import ToolDefinition
from shared.models.messages import (
    AssistantMessage,
    Content,
    Message,
    OpaqueItem,
    Part,
    ProviderReasoning,
    TextPart,
    ToolCall,
)
from shared.models.values import JsonObject, JsonValue

CHAT_COMPLETIONS = "chat_completions"
"""The API in whose form messages are written here."""

REASONING_MEMBERS = ("reasoning_content", "reasoning")
"""The members of a message in which servers of this API give reasoning, and read it."""


def canonical_parts(tools: Sequence[ToolDefinition], messages: Sequence[Message]) -> tuple[bytes, ...]:
    """Return the bytes of the array of tools (b"" without tools), then those of each message in the given order.

    Raises:
        orjson.JSONEncodeError: a schema holds a value that cannot be written as JSON.
    """
    head = orjson.dumps(tools_json(tools)) if tools else b""
    return (head, *(orjson.dumps(message_json(message)) for message in messages))


def tools_json(tools: Sequence[ToolDefinition]) -> list[JsonObject]:
    """Return the array of tools, sorted by their names."""
    return [function_json(tool) for tool in sorted(tools, key=lambda tool: tool.name)]


def function_json(definition: ToolDefinition) -> JsonObject:
    """Return a function as it is offered to the model; the keys of its schema are sorted."""
    function: JsonObject = {"name": definition.name}
    if definition.description is not None:
        function["description"] = definition.description
    if definition.parameters is not None:
        function["parameters"] = sort_keys(definition.parameters)
    if definition.strict is not None:
        function["strict"] = definition.strict
    return {"type": "function", "function": function}


def sort_keys(value: JsonObject) -> JsonObject:
    """Sort the keys of a JSON object at every depth, so that equal objects make equal bytes."""
    return {name: _sort(value[name]) for name in sorted(value)}


def _sort(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return sort_keys(value)
    return [_sort(element) for element in value] if isinstance(value, list) else value


def message_json(message: Message) -> JsonObject:
    """Return a message in the form in which it is sent."""
    if message.role == "assistant":
        return _assistant_message(message)
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": _content(message.content)}
    return {"role": message.role, "content": _content(message.content)}


def read_reasoning(members: Mapping[str, str]) -> ProviderReasoning | None:
    """Return reasoning by the names of the members of a message in which it stands; None where there is none."""
    item = OpaqueItem(content=orjson.dumps(members).decode())
    return ProviderReasoning(api=CHAT_COMPLETIONS, items=(item,)) if members else None


def _assistant_message(message: AssistantMessage) -> JsonObject:
    kept = message.reasoning
    said: JsonObject = {"role": "assistant", "content": message.text}
    if message.tool_calls:
        said |= {"content": message.text or None, "tool_calls": [_tool_call(call) for call in message.tool_calls]}
    for item in kept.items if kept is not None and kept.api == CHAT_COMPLETIONS else ():
        said |= orjson.loads(item.content)
    return said


def _tool_call(call: ToolCall) -> JsonObject:
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _content(content: Content) -> str | list[JsonObject]:
    return content if isinstance(content, str) else [_part(part) for part in content]


def _part(part: Part) -> JsonObject:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": part.url, "detail": part.detail}}
