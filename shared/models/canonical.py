"""The bytes of tools and messages as a chat-completions request carries them: equal values make equal bytes.

Both services read these forms: chat_shell sends them, the backend compares them with what was sent before.
"""

from collections.abc import Sequence
from typing import Any, TypeGuard

import orjson

from shared.models.execution import ToolDefinition
from shared.models.messages import AssistantMessage, Content, Message, Part, TextPart, ToolCall

Json = dict[str, Any]


def canonical_parts(tools: Sequence[ToolDefinition], messages: Sequence[Message]) -> tuple[bytes, ...]:
    """Return the array of tools (b"" where there are none), then each message, in the order of a request.

    Raises:
        orjson.JSONEncodeError: a schema holds what JSON cannot carry.
    """
    head = orjson.dumps(tools_json(tools)) if tools else b""
    return (head, *(orjson.dumps(message_json(message)) for message in messages))


def tools_json(tools: Sequence[ToolDefinition]) -> list[Json]:
    """Return the array of tools, sorted by name."""
    return [tool_json(tool) for tool in sorted(tools, key=lambda tool: tool.name)]


def tool_json(definition: ToolDefinition) -> Json:
    """Return a function as it is offered, the keys of its schema in order."""
    function: Json = {"name": definition.name}
    if definition.description is not None:
        function["description"] = definition.description
    if definition.parameters is not None:
        function["parameters"] = sorted_keys(definition.parameters)
    if definition.strict is not None:
        function["strict"] = definition.strict
    return {"type": "function", "function": function}


def sorted_keys(value: Any) -> Any:
    """Order the keys of a JSON value at every depth: equal values make equal bytes."""
    if _is_object(value):
        return {name: sorted_keys(value[name]) for name in sorted(value)}
    return [sorted_keys(item) for item in value] if _is_list(value) else value


def message_json(message: Message) -> Json:
    """Return a message as it is sent."""
    if message.role == "assistant":
        return _assistant_message(message)
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": _content(message.content)}
    return {"role": message.role, "content": _content(message.content)}


def _assistant_message(message: AssistantMessage) -> Json:
    if not message.tool_calls:
        return {"role": "assistant", "content": message.text}
    calls = [_tool_call(call) for call in message.tool_calls]
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}


def _tool_call(call: ToolCall) -> Json:
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _content(content: Content) -> str | list[Json]:
    return content if isinstance(content, str) else [_part(part) for part in content]


def _part(part: Part) -> Json:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": part.url, "detail": part.detail}}


def _is_object(value: Any) -> TypeGuard[Json]:
    return isinstance(value, dict)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
