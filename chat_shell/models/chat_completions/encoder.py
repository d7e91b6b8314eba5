"""Encode a model call as the bytes of a chat-completions request; equal calls give equal bytes.

Fields that are constant in a conversation come first, and fields that may change from call to call come after the
messages, so that a request begins with the bytes of the one before it.
"""

from dataclasses import dataclass, replace
from typing import Literal

import orjson

from chat_shell.models.ports import ModelCall
from shared.errors import InvalidRequest
from shared.models.canonical import REASONING_MEMBERS, message_json, sort_keys, tools_json
from shared.models.execution import ModelParameters, NamedToolChoice, ToolChoice
from shared.models.messages import Message
from shared.models.values import JsonObject

TokenLimitName = Literal["max_tokens", "max_completion_tokens"]


@dataclass(frozen=True)
class Dialect:
    """Which of the optional fields a server accepts.

    Every server knows `max_tokens` except OpenAI's reasoning models, which answer it with an error and want
    `max_completion_tokens`. Some servers silently ignore the newer name (ollama/ollama#7125), so the older one is
    tried first. `unread` are members of messages in which reasoning is not given back.
    """

    token_limit: TokenLimitName = "max_tokens"  # noqa: S105 - a field's name
    cache_key: bool = True
    stream_usage: bool = True
    parallel_tool_calls: bool = True
    unread: frozenset[str] = frozenset()

    def without(self, field: str) -> "Dialect | None":
        """Return the dialect that avoids a refused field, or None where the field cannot be avoided.

        Only a field that this adapter adds by itself can be left out or renamed, never what the caller asked for; and
        reasoning, which a server may give without reading it: Groq refuses any member that it does not read.
        """
        if field in REASONING_MEMBERS and field not in self.unread:
            return replace(self, unread=self.unread | {field})
        if field == self.token_limit:
            other: TokenLimitName = "max_completion_tokens" if field == "max_tokens" else "max_tokens"
            return replace(self, token_limit=other)
        flag = _FLAGS.get(field)
        return replace(self, **{flag: False}) if flag is not None and getattr(self, flag) else None


_FLAGS = {
    "prompt_cache_key": "cache_key",
    "stream_options": "stream_usage",
    "parallel_tool_calls": "parallel_tool_calls",
}
OPTIONAL_FIELDS = ("max_completion_tokens", "max_tokens", *_FLAGS, *REASONING_MEMBERS)
"""Fields that a server may refuse although the call is right."""

STANDARD_DIALECT = Dialect()


def encode_call(call: ModelCall, dialect: Dialect = STANDARD_DIALECT) -> bytes:
    """Encode a streamed request.

    Raises:
        InvalidRequest: a schema contains a value that JSON cannot represent.
    """
    try:
        return orjson.dumps(call.with_extra(_constant_fields(call, dialect) | _changing_fields(call, dialect)))
    except orjson.JSONEncodeError as error:
        raise InvalidRequest("a tool's schema or the text format cannot be sent as JSON", param="tools") from error


def _constant_fields(call: ModelCall, dialect: Dialect) -> JsonObject:
    body: JsonObject = {"model": call.model}
    if dialect.cache_key and call.cache_key:
        body["prompt_cache_key"] = call.cache_key
    body["stream"] = True
    if dialect.stream_usage:
        body["stream_options"] = {"include_usage": True}
    if call.tools:
        body["tools"] = tools_json(call.tools)
        if dialect.parallel_tool_calls:
            body["parallel_tool_calls"] = call.parameters.parallel_tool_calls
    body["messages"] = [_message(message, dialect) for message in call.sent_messages]
    return body


def _message(message: Message, dialect: Dialect) -> JsonObject:
    form = message_json(message)
    return {name: value for name, value in form.items() if name not in dialect.unread} if dialect.unread else form


def _changing_fields(call: ModelCall, dialect: Dialect) -> JsonObject:
    asked = call.parameters
    body: JsonObject = {"tool_choice": _tool_choice(asked.tool_choice) if call.tools else None}
    body["temperature"] = asked.temperature
    body["top_p"] = asked.top_p
    body["presence_penalty"] = asked.presence_penalty
    body["frequency_penalty"] = asked.frequency_penalty
    body[dialect.token_limit] = asked.max_output_tokens
    body["reasoning_effort"] = asked.reasoning_effort
    body["verbosity"] = asked.verbosity
    body["response_format"] = _response_format(asked)
    body["seed"] = asked.seed
    body["stop"] = list(asked.stop) or None
    body["logprobs"] = None if asked.top_logprobs is None else True
    body["top_logprobs"] = asked.top_logprobs or None
    return {name: value for name, value in body.items() if value is not None}


def _tool_choice(choice: ToolChoice) -> str | JsonObject:
    if isinstance(choice, NamedToolChoice):
        return {"type": "function", "function": {"name": choice.name}}
    return choice


def _response_format(asked: ModelParameters) -> JsonObject | None:
    text_format = asked.text_format
    if text_format is None or text_format.get("type") == "text":
        return None
    if text_format.get("type") != "json_schema":
        return sort_keys(text_format)
    # The keys of the schema keep their order, because models write the properties of an answer in this order.
    given = {name: text_format[name] for name in sorted(text_format) if text_format[name] is not None}
    del given["type"]
    return {"type": "json_schema", "json_schema": given}
