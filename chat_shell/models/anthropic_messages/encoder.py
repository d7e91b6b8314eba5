"""Anthropic's Messages API: encode a model call as the bytes of a request; equal calls give equal bytes.

Tools, system and messages come first, in the order in which the provider's cache reads them; fields that may change
from call to call come behind them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import orjson

from chat_shell.models.anthropic_messages.assembler import MessageAssembler
from chat_shell.models.anthropic_messages.blocks import CACHE_CONTROL, alternate_messages
from chat_shell.models.anthropic_messages.thinking import ANTHROPIC_MESSAGES, ThinkingMode, encode_thinking
from chat_shell.models.ports import ModelCall
from chat_shell.models.transport.kept_items import pieces_of
from chat_shell.models.transport.provider_errors import find_refused_field
from chat_shell.models.transport.streaming import Avoidance
from shared.errors import InvalidRequest
from shared.models.canonical import sort_keys
from shared.models.execution import ModelParameters, NamedToolChoice, ToolDefinition, Verbosity
from shared.models.messages import AssistantMessage, Message, SystemMessage
from shared.models.values import JsonObject, Value

MAX_MARKS = 4
"""The largest number of marks in a request."""

LOOKBACK_BLOCKS = 20
"""How far behind a mark a provider looks for a position that an earlier request has marked."""

STRIDE_BLOCKS = 15
"""How far apart marks of a long turn stand: less than the lookback, so that calls side by side leave no gap."""


class CacheMarks(Value):
    """Marks of a prompt: at the end of tools and system message, and behind messages, whose indexes ascend."""

    on_header: bool
    messages: tuple[int, ...]


NO_MARKS = CacheMarks(on_header=False, messages=())


def cache_marks(messages: Sequence[Message], stored: int, *, has_tools: bool) -> CacheMarks:
    """Place the marks of a model call.

    `messages` are those that the turn's next call repeats, a reminder at the end left out. The first `stored` of
    them are the system message and the history; what follows is the turn's. Of a very long turn the newest marks
    are kept: the calls before have marked what lies behind them.
    """
    header = 1 if messages and isinstance(messages[0], SystemMessage) else 0
    on_header = has_tools or header > 0
    places = [end - 1 for end in _ends(messages, stored) if end > header]
    return CacheMarks(on_header=on_header, messages=tuple(places[-(MAX_MARKS - on_header) :]))


def block_count(message: Message) -> int:
    """Count the blocks that a provider sees in a message: parts, and each tool call by itself."""
    if isinstance(message, AssistantMessage):
        return max(1, sum(1 for _ in pieces_of(message, ANTHROPIC_MESSAGES)))
    return 1 if isinstance(message.content, str) else max(1, len(message.content))


def _ends(messages: Sequence[Message], stored: int) -> Iterator[int]:
    """Yield, ascending and once each, the end of the last answer that is stored, every stride of the turn, and its end.

    What of the stored messages follows that answer came with the question, or moves in front of it in each turn.
    """
    answered = next((end for end in range(stored, 0, -1) if messages[end - 1].role != "user"), stored)
    if 0 < answered < len(messages):
        yield answered
    blocks = 0
    for place, message in enumerate(messages[stored:], stored):
        blocks += block_count(message)
        if blocks > STRIDE_BLOCKS and place > stored:
            yield place
            blocks = block_count(message)
    if messages:
        yield len(messages)


_NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}}


@dataclass(frozen=True)
class MessagesForm:
    """What the operator's entry says of a model, and what it has turned out to take.

    `max_output_tokens` is sent where the caller names no limit, because the API demands one. `mark` is the value of
    `cache_control`; None where the server finds prefixes by itself.
    """

    max_output_tokens: int
    thinking: ThinkingMode = ThinkingMode.ADAPTIVE
    sends_thinking: bool = True
    mark: JsonObject | None = field(default_factory=CACHE_CONTROL.copy)
    is_diagnosed: bool = False


def encode_messages_request(call: ModelCall, form: MessagesForm) -> bytes:
    """Encode a streamed request.

    Raises:
        InvalidRequest: the API does not have a parameter or a kind of image; or a schema cannot be written as JSON.
    """
    marks = NO_MARKS
    if form.mark is not None:
        marks = cache_marks(call.messages, call.stored, has_tools=bool(call.tools))
    marked = dict.fromkeys(marks.messages, form.mark)
    messages = alternate_messages(call.sent_messages, marked, sends_thinking=form.sends_thinking)
    own = {
        "model": call.model,
        "stream": True,
        **_header(call, form.mark if marks.on_header else None),
        "messages": messages,
        "diagnostics": {"previous_message_id": call.compared_with or None} if form.is_diagnosed else None,
        **_encode_changing_fields(call, form),
    }
    body = call.with_extra(own)
    try:
        return orjson.dumps({name: value for name, value in body.items() if value is not None})
    except orjson.JSONEncodeError as error:
        raise InvalidRequest("a tool's schema or the text format cannot be sent as JSON", param="tools") from error


def _header(call: ModelCall, mark: JsonObject | None) -> JsonObject:
    """Return tools and system; the mark stands at the end of the last of the two."""
    tools = [_tool(tool) for tool in sorted(call.tools, key=lambda tool: tool.name)]
    first = call.messages[0] if call.messages else None
    text = first.content if isinstance(first, SystemMessage) else ""
    system: list[JsonObject] = [{"type": "text", "text": text}] if text.strip() else []
    last = system or tools
    if mark is not None and last:
        last[-1] = last[-1] | {"cache_control": mark}
    return {"tools": tools or None, "system": system or None}


def _tool(tool: ToolDefinition) -> JsonObject:
    schema = _NO_PARAMETERS if tool.parameters is None else sort_keys(tool.parameters)
    return {
        "name": tool.name,
        **({"description": tool.description} if tool.description is not None else {}),
        "input_schema": schema,
        **({"strict": True} if tool.strict else {}),
    }


def _encode_changing_fields(call: ModelCall, form: MessagesForm) -> JsonObject:
    asked = call.parameters
    _refuse_unknown(asked)
    max_tokens = asked.max_output_tokens or form.max_output_tokens
    thinking = encode_thinking(call, form.thinking, max_tokens, sends_thinking=form.sends_thinking)
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


API_VERSION = "2023-06-01"

_REFUSED_BLOCKS = (b"Invalid `signature`", b"Invalid signature", b"expected `thinking`", b"start with a thinking block")
"""How the API refuses thinking blocks: of another model or organisation, or missing where it demands them."""


@dataclass(frozen=True)
class AnthropicMessagesApi:
    """The `ProviderApi` of Anthropic's Messages."""

    form: MessagesForm
    path: str = "/messages"

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the credential and the version of the API; see the protocol."""
        version = {"anthropic-version": API_VERSION}
        return version | {"x-api-key": api_key} if api_key else version

    def encode(self, call: ModelCall) -> bytes:
        """Encode a streamed request; see the protocol."""
        return encode_messages_request(call, self.form)

    def assembler(self, call: ModelCall) -> MessageAssembler:
        """Return what reads the answer to a call."""
        return MessageAssembler(is_diagnosed=self.form.is_diagnosed)

    def avoid(self, status: int, body: bytes) -> Avoidance | None:
        """Return the API with the mode of thinking that the model has, or without a question about its cache.

        For this call alone it may be without thinking.
        """
        if self.form.is_diagnosed and find_refused_field(status, body, ("diagnostics",)) is not None:
            return Avoidance(self._with(is_diagnosed=False))
        if status != 400 or b"thinking" not in body:
            return None
        if self.form.sends_thinking and any(words.lower() in body.lower() for words in _REFUSED_BLOCKS):
            return Avoidance(self._with(sends_thinking=False), is_lasting=False)
        if b"not supported" not in body:
            return None
        # The refusal of one mode recommends the other, so the mode that is sent decides.
        other = ThinkingMode.BUDGET if self.form.thinking is ThinkingMode.ADAPTIVE else ThinkingMode.ADAPTIVE
        return Avoidance(self._with(thinking=other))

    def _with(self, **changes: object) -> "AnthropicMessagesApi":
        return replace(self, form=replace(self.form, **changes))
