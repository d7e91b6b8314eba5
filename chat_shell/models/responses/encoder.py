"""Encode a model call as the bytes of a Responses request; equal calls give equal bytes.

Nothing is stored at the provider, so each request carries the whole conversation, with the encrypted reasoning of
earlier answers at its old places. Fields that are constant in a conversation come first, and fields that may change
from call to call come after the input.
"""

from collections.abc import Iterator

import orjson

from chat_shell.models.ports import ModelCall
from chat_shell.models.transport.breakpoints import (
    BREAKPOINT,
    COMPARISON,
    OPTIONS,
    breakpoint_options,
    breakpoint_places,
    with_breakpoint,
)
from chat_shell.models.transport.kept_items import pieces_of
from shared.errors import InvalidRequest
from shared.models.canonical import sort_keys
from shared.models.execution import ModelParameters, NamedToolChoice, ToolChoice, ToolDefinition
from shared.models.messages import AssistantMessage, Message, OpaqueItem, SystemMessage, ToolCall
from shared.models.openai_items import encode_items
from shared.models.values import JsonObject, JsonValue

RESPONSES = "responses"
REFUSABLE_FIELDS = ("prompt_cache_key", "include", "parallel_tool_calls", OPTIONS, BREAKPOINT)
"""Fields that a server may refuse although the call is right."""

_INCLUDED = ["reasoning.encrypted_content"]
_NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}}


def encode_response_request(
    call: ModelCall,
    *,
    left_out: frozenset[str] = frozenset(),
    sends_reasoning: bool = True,
    breakpoint_ttl: str | None = None,
) -> bytes:
    """Encode a streamed request; with a `breakpoint_ttl` each item that may carry a breakpoint of the cache does.

    Raises:
        InvalidRequest: a parameter does not exist in this API, or a schema cannot be written as JSON.
    """
    ttl = None if left_out.intersection((OPTIONS, BREAKPOINT)) else breakpoint_ttl
    instructions = _instructions(call) if ttl is None else None
    items = [_items(message, sends_reasoning) for message in call.sent_messages[instructions is not None :]]
    for place in breakpoint_places(call.messages) if ttl is not None else ():
        items[place] = [_with_breakpoint(item) for item in items[place]]
    own: JsonObject = {
        **_constant_fields(call, instructions),
        OPTIONS: None if ttl is None else breakpoint_options(ttl, "" if COMPARISON in left_out else call.compared_with),
        "input": [item for group in items for item in group],
        **_encode_changing_fields(call),
    }
    body = call.with_extra(own)
    try:
        return orjson.dumps({name: body[name] for name in body if name not in left_out and body[name] is not None})
    except orjson.JSONEncodeError as error:
        raise InvalidRequest("a tool's schema or the text format cannot be sent as JSON", param="tools") from error


def _constant_fields(call: ModelCall, instructions: str | None) -> JsonObject:
    return {
        "model": call.model,
        "prompt_cache_key": call.cache_key or None,
        "cache_salt": call.cache_salt or None,
        "stream": True,
        "store": False,
        "include": _INCLUDED if call.parameters.top_logprobs is None else [*_INCLUDED, "message.output_text.logprobs"],
        "instructions": instructions,
        "tools": [_tool(tool) for tool in sorted(call.tools, key=lambda tool: tool.name)] or None,
        "parallel_tool_calls": call.parameters.parallel_tool_calls if call.tools else None,
    }


def _tool(tool: ToolDefinition) -> JsonObject:
    """Return a function; `strict` always stands there, because the API's own default rewrites schemas."""
    return {
        "type": "function",
        "name": tool.name,
        **({"description": tool.description} if tool.description is not None else {}),
        "parameters": _NO_PARAMETERS if tool.parameters is None else sort_keys(tool.parameters),
        "strict": bool(tool.strict),
    }


def _instructions(call: ModelCall) -> str | None:
    """Return the system message; where no user follows it, it stays in the input, which the API wants not empty."""
    match call.messages:
        case (SystemMessage(content=text), follower, *_) if follower.role != "assistant":
            return text
        case _:
            return None


def _items(message: Message, sends_reasoning: bool) -> list[JsonObject]:
    if message.role == "assistant":
        return list(_answer(message, sends_reasoning))
    return encode_items((message,), None)


_MARKED_MEMBERS = ("output", "content")


def _with_breakpoint(item: JsonObject) -> JsonObject:
    return item | {name: with_breakpoint(item[name], "input_text") for name in _MARKED_MEMBERS if name in item}


def _answer(message: AssistantMessage, sends_reasoning: bool) -> Iterator[JsonObject]:
    phase: JsonObject = {}
    for piece in pieces_of(message, RESPONSES):
        match piece:
            case str():
                yield {"type": "message", "role": "assistant", "content": piece, **phase}
            case ToolCall():
                called = {"call_id": piece.call_id, "name": piece.name, "arguments": piece.arguments}
                yield {"type": "function_call", **called}
            case OpaqueItem():
                kept: JsonObject = orjson.loads(piece.content)
                if "phase" in kept:
                    phase = kept
                elif sends_reasoning:
                    yield kept


def _encode_changing_fields(call: ModelCall) -> JsonObject:
    asked = call.parameters
    _refuse_unknown(asked)
    effort = asked.reasoning_effort
    return {
        "tool_choice": _tool_choice(asked.tool_choice) if call.tools else None,
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "max_output_tokens": asked.max_output_tokens,
        "reasoning": None if effort is None else {"effort": effort},
        "text": _text(asked),
        "top_logprobs": asked.top_logprobs or None,
    }


def _refuse_unknown(asked: ModelParameters) -> None:
    """Refuse what only chat completions have; a penalty of 0 asks for nothing, a seed of 0 does.

    Raises:
        InvalidRequest: `param` names the parameter.
    """
    wanted = {
        "presence_penalty": bool(asked.presence_penalty),
        "frequency_penalty": bool(asked.frequency_penalty),
        "seed": asked.seed is not None,
        "stop": bool(asked.stop),
    }
    for name, is_wanted in wanted.items():
        if is_wanted:
            raise InvalidRequest(f"{name}: this model's API does not have it; leave it out", param=name)


def _tool_choice(choice: ToolChoice) -> str | JsonObject:
    return {"type": "function", "name": choice.name} if isinstance(choice, NamedToolChoice) else choice


def _text(asked: ModelParameters) -> JsonObject | None:
    text: dict[str, JsonValue] = {}
    given = asked.text_format
    if given is not None and given.get("type") != "text":
        # The keys of the schema keep their order, because models write the properties of an answer in this order.
        text["format"] = {name: given[name] for name in sorted(given) if given[name] is not None}
    if asked.verbosity is not None:
        text["verbosity"] = asked.verbosity
    return text or None
