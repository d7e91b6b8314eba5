"""Encode a model call as the bytes of a Messages request; equal calls give equal bytes.

Tools, system and messages come first, in the order in which the provider's cache reads them; fields that may change
from call to call come behind them.
"""

from dataclasses import dataclass

import orjson

from chat_shell.models.anthropic_messages.blocks import CACHE_CONTROL, alternating_messages
from chat_shell.models.anthropic_messages.cache_marks import CacheMarks, cache_marks
from chat_shell.models.anthropic_messages.thinking import ThinkingMode, thinking_fields
from chat_shell.models.ports import ModelCall
from shared.errors import InvalidRequest
from shared.models.canonical import sort_keys
from shared.models.execution import ModelParameters, NamedToolChoice, ToolDefinition, Verbosity
from shared.models.messages import SystemMessage
from shared.models.values import JsonObject

_NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}}


@dataclass(frozen=True)
class MessagesForm:
    """What the operator's entry says of a model, and what it has turned out to take.

    `max_output_tokens` is sent where the caller names no limit, because the API demands one.
    """

    max_output_tokens: int
    thinking: ThinkingMode = ThinkingMode.ADAPTIVE
    sends_thinking: bool = True


def encode_messages_request(call: ModelCall, form: MessagesForm) -> bytes:
    """Encode a streamed request.

    Raises:
        InvalidRequest: the API does not have a parameter or a kind of image; or a schema cannot be written as JSON.
    """
    marks = cache_marks(call.messages, call.stored, has_tools=bool(call.tools))
    messages = alternating_messages(call.sent_messages, frozenset(marks.messages), sends_thinking=form.sends_thinking)
    own = {
        "model": call.model,
        "stream": True,
        **_header(call, marks),
        "messages": messages,
        **_changing_fields(call, form),
    }
    body = call.with_extra(own)
    try:
        return orjson.dumps({name: value for name, value in body.items() if value is not None})
    except orjson.JSONEncodeError as error:
        raise InvalidRequest("a tool's schema or the text format cannot be sent as JSON", param="tools") from error


def _header(call: ModelCall, marks: CacheMarks) -> JsonObject:
    """Return tools and system; the mark stands at the end of the last of the two."""
    tools = [_tool(tool) for tool in sorted(call.tools, key=lambda tool: tool.name)]
    first = call.messages[0] if call.messages else None
    text = first.content if isinstance(first, SystemMessage) else ""
    system: list[JsonObject] = [{"type": "text", "text": text}] if text.strip() else []
    last = system or tools
    if marks.on_header and last:
        last[-1] = last[-1] | {"cache_control": CACHE_CONTROL}
    return {"tools": tools or None, "system": system or None}


def _tool(tool: ToolDefinition) -> JsonObject:
    schema = _NO_PARAMETERS if tool.parameters is None else sort_keys(tool.parameters)
    return {
        "name": tool.name,
        **({"description": tool.description} if tool.description is not None else {}),
        "input_schema": schema,
        **({"strict": True} if tool.strict else {}),
    }


def _changing_fields(call: ModelCall, form: MessagesForm) -> JsonObject:
    asked = call.parameters
    _refuse_unknown(asked)
    max_tokens = asked.max_output_tokens or form.max_output_tokens
    thinking = thinking_fields(call, form.thinking, max_tokens, sends_thinking=form.sends_thinking)
    given = form.sends_thinking and "thinking" in (asked.extra or {})
    output = {"effort": thinking.get("effort"), "format": _output_format(asked)}
    return {
        "tool_choice": _tool_choice(asked) if call.tools else None,
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "max_tokens": max_tokens,
        "stop_sequences": list(asked.stop) or None,
        "thinking": None if given else thinking.get("thinking"),
        "output_config": {name: value for name, value in output.items() if value is not None} or None,
    }


def _refuse_unknown(asked: ModelParameters) -> None:
    """Refuse what the API does not have; values that ask for what it does anyway are left out."""
    wanted = {
        "presence_penalty": bool(asked.presence_penalty),
        "frequency_penalty": bool(asked.frequency_penalty),
        "seed": asked.seed is not None,
        "top_logprobs": asked.top_logprobs is not None,
    }
    for name, is_wanted in wanted.items():
        if is_wanted:
            raise InvalidRequest(f"{name}: this model's API does not have it; leave it out", param=name)
    if asked.verbosity not in (None, Verbosity.MEDIUM):
        raise InvalidRequest("text.verbosity: this model's API does not have it; leave it out", param="text.verbosity")
    if asked.temperature is not None and asked.temperature > 1:
        raise InvalidRequest("temperature: must be between 0 and 1 for this model", param="temperature")


def _tool_choice(asked: ModelParameters) -> JsonObject:
    choice = asked.tool_choice
    if choice == "none":
        return {"type": "none"}
    named: JsonObject = {"type": "any" if choice == "required" else "auto"}
    if isinstance(choice, NamedToolChoice):
        named = {"type": "tool", "name": choice.name}
    return named if asked.parallel_tool_calls else named | {"disable_parallel_tool_use": True}


def _output_format(asked: ModelParameters) -> JsonObject | None:
    given = asked.text_format
    if given is None or given.get("type") == "text":
        return None
    if given.get("type") != "json_schema":
        problem = "must be text or json_schema for this model"
        raise InvalidRequest(f"text.format.type: {problem}", param="text.format.type")
    return {"type": "json_schema", "schema": given.get("schema")}
