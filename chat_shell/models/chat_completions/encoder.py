"""OpenAI's chat completions: encode a model call as the bytes of a request; equal calls give equal bytes.

Fields that are constant in a conversation come first, and fields that may change from call to call come after the
messages, so that a request begins with the bytes of the one before it.
"""

from dataclasses import dataclass, replace
from typing import Literal

import orjson

from chat_shell.models.chat_completions.assembler import AnswerAssembler, WeighedAnswerAssembler
from chat_shell.models.ports import ModelCall
from chat_shell.models.transport.breakpoints import (
    BREAKPOINT,
    OPTIONS,
    breakpoint_options,
    breakpoint_places,
    with_breakpoint,
)
from chat_shell.models.transport.provider_errors import find_refused_field
from chat_shell.models.transport.streaming import Avoidance
from shared.errors import InvalidRequest
from shared.models.canonical import REASONING_MEMBERS, message_json, sort_keys, tools_json
from shared.models.execution import ModelParameters, NamedToolChoice, ToolChoice
from shared.models.messages import Message
from shared.models.values import JsonObject
from shared.prompts.message_order import read_reminder

TokenLimitName = Literal["max_tokens", "max_completion_tokens"]


@dataclass(frozen=True)
class Dialect:
    """Which of the optional fields a server accepts.

    Every server knows `max_tokens` except OpenAI's reasoning models, which answer it with an error and want
    `max_completion_tokens`. Some servers silently ignore the newer name (ollama/ollama#7125), so the older one is
    tried first. `unread` are members of messages in which reasoning is not given back. With a `breakpoint_ttl` each
    message that may carry a breakpoint of the cache does.
    """

    token_limit: TokenLimitName = "max_tokens"  # noqa: S105 - a field's name
    cache_key: bool = True
    stream_usage: bool = True
    parallel_tool_calls: bool = True
    unread: frozenset[str] = frozenset()
    breakpoint_ttl: str | None = None

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
        if field in (OPTIONS, BREAKPOINT):
            return replace(self, breakpoint_ttl=None) if self.breakpoint_ttl is not None else None
        flag = _FLAGS.get(field)
        return replace(self, **{flag: False}) if flag is not None and getattr(self, flag) else None


_FLAGS = {
    "prompt_cache_key": "cache_key",
    "stream_options": "stream_usage",
    "parallel_tool_calls": "parallel_tool_calls",
}
OPTIONAL_FIELDS = ("max_completion_tokens", "max_tokens", OPTIONS, BREAKPOINT, *_FLAGS, *REASONING_MEMBERS)
"""Fields that a server may refuse although the call is right."""

STANDARD_DIALECT = Dialect()


def encode_call(call: ModelCall, dialect: Dialect = STANDARD_DIALECT) -> bytes:
    """Encode a streamed request.

    Raises:
        InvalidRequest: a schema contains a value that JSON cannot represent.
    """
    try:
        return orjson.dumps(call.with_extra(_constant_fields(call, dialect) | _encode_changing_fields(call, dialect)))
    except orjson.JSONEncodeError as error:
        raise InvalidRequest("a tool's schema or the text format cannot be sent as JSON", param="tools") from error


def _constant_fields(call: ModelCall, dialect: Dialect) -> JsonObject:
    body: JsonObject = {"model": call.model}
    if dialect.cache_key and call.cache_key:
        body["prompt_cache_key"] = call.cache_key
    body["stream"] = True
    if dialect.stream_usage:
        body["stream_options"] = {"include_usage": True}
    if dialect.breakpoint_ttl is not None:
        body[OPTIONS] = breakpoint_options(dialect.breakpoint_ttl)
    if call.cache_salt:
        body["cache_salt"] = call.cache_salt
    if call.tools:
        body["tools"] = tools_json(call.tools)
        if dialect.parallel_tool_calls:
            body["parallel_tool_calls"] = call.parameters.parallel_tool_calls
    body["messages"] = _messages(call, dialect)
    return body


def _messages(call: ModelCall, dialect: Dialect) -> list[JsonObject]:
    messages = [_message(message, dialect) for message in call.sent_messages]
    for place in breakpoint_places(call.messages) if dialect.breakpoint_ttl is not None else ():
        messages[place] |= {"content": with_breakpoint(messages[place]["content"], "text")}
    return messages


def _message(message: Message, dialect: Dialect) -> JsonObject:
    form = message_json(message)
    return {name: value for name, value in form.items() if name not in dialect.unread} if dialect.unread else form


def _encode_changing_fields(call: ModelCall, dialect: Dialect) -> JsonObject:
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


@dataclass(frozen=True)
class ChatCompletionsApi:
    """The `ProviderApi` of servers with OpenAI's chat completions."""

    dialect: Dialect = STANDARD_DIALECT
    path: str = "/chat/completions"

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the credential; see the protocol."""
        return {"Authorization": f"Bearer {api_key}"} if api_key else {}

    def encode(self, call: ModelCall) -> bytes:
        """Encode a streamed request; see the protocol."""
        return encode_call(call, self.dialect)

    def assembler(self, call: ModelCall) -> AnswerAssembler:
        """Return what reads the answer to a call."""
        kind = AnswerAssembler if call.parameters.top_logprobs is None else WeighedAnswerAssembler
        roles = (message.role for message in reversed(call.messages) if read_reminder(message) is None)
        return kind(follows_results=next(roles, "") == "tool")

    def avoid(self, status: int, body: bytes) -> Avoidance | None:
        """Return the API without a field that the server refuses; without reasoning for this call alone."""
        refused = find_refused_field(status, body, OPTIONAL_FIELDS)
        dialect = None if refused is None else self.dialect.without(refused)
        if dialect is None:
            return None
        return Avoidance(ChatCompletionsApi(dialect), is_lasting=dialect.unread == self.dialect.unread)
