"""Tool calls that a model has written as text, because its server does not translate them.

Three forms are known: `<tool_call>{…}</tool_call>` (Hermes, Qwen), a block of JSON between fences with a name and
arguments (Mistral, Llama), and `<function=name>{…}</function>` (Llama 3.1), with `<parameter=…>` in place of the object
(Qwen3-Coder). Only an answer that is nothing else is one, and only calls of tools that were offered count.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from shared.errors import InvalidRequest
from shared.models.json_text import decode_json, encode_json
from shared.models.messages import AssistantMessage, Message, ToolCall
from shared.models.values import JsonObject, JsonValue

MAX_HELD_CHARACTERS = 65_536
"""A longer answer is shown, whatever it begins with; arguments of real calls are far shorter."""

MAX_WRITTEN_CALLS = 64

_MAX_OPENING_CHARACTERS = 1_024
"""Longer than what calls begin with, blanks included."""

_ID_PREFIX = "call_written_"
_ARGUMENTS = ("arguments", "parameters")
_FENCE = "```"
_FENCE_LANGUAGES = ("json", "tool_call", "")
_CALL_OPEN, _CALL_CLOSE = "<tool_call>", "</tool_call>"
_FUNCTION_OPEN, _FUNCTION_CLOSE = "<function=", "</function>"
_FENCED = re.compile(r"```(?:json|tool_call)?\s*([\[{].*[\]}])\s*```", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\s]+)\s*>")
_PARAMETER = re.compile(r"\s*<parameter=([^>\s]+)\s*>(.*?)</parameter>", re.DOTALL)
_BLANKS = re.compile(r"\s+")


def read_written_calls(text: str, names: Collection[str]) -> tuple[ToolCall, ...]:
    """Return the calls of which a whole answer consists; none where anything else stands in it."""
    try:
        calls = tuple(_calls_in(text.strip(), names))
    except (InvalidRequest, _NoCall):
        return ()
    return calls if len(calls) <= MAX_WRITTEN_CALLS else ()


def has_written_call(messages: Sequence[Message]) -> bool:
    """Whether a call that was written as text is among the calls of a turn: one answer of a turn is read so."""
    said = (message for message in messages if isinstance(message, AssistantMessage))
    return any(call.call_id.startswith(_ID_PREFIX) for message in said for call in message.tool_calls)


class TextOfCalls:
    """Holds back the text of an answer while it may turn out to be calls of the named tools, and shows all else.

    How the text is split makes no difference. Without names nothing is held back.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._held: list[str] = []
        self._held_characters = 0
        self._is_decided = not names
        self._may_be_calls = bool(names)

    def feed(self, text: str) -> str:
        """Take more text; return what may be shown."""
        if not self._may_be_calls:
            return text
        self._held.append(text)
        self._held_characters += len(text)
        if self._held_characters > (MAX_HELD_CHARACTERS if self._is_decided else _MAX_OPENING_CHARACTERS):
            self._may_be_calls = False
        elif not self._is_decided:
            self._decide()
        return "" if self._may_be_calls else self.release()

    def take_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls that the ended answer consists of, of which nothing is shown; none where it has words."""
        calls = read_written_calls("".join(self._held), self._names) if self._may_be_calls else ()
        if calls:
            self._held.clear()
        return calls

    def release(self) -> str:
        """Return the text that was held back, which ends the holding back."""
        self._may_be_calls = False
        text = "".join(self._held)
        self._held.clear()
        return text

    def _decide(self) -> None:
        beginning = _BLANKS.sub("", "".join(self._held))
        if beginning and beginning[0] not in "<`":
            self._may_be_calls = False
            return
        openings = tuple(_openings(self._names))
        self._is_decided = beginning.startswith(openings)
        self._may_be_calls = self._is_decided or any(opening.startswith(beginning) for opening in openings)


def _openings(names: Collection[str]) -> Iterator[str]:
    """Yield what an answer of each form begins with, without its blanks."""
    members = [f'{{"name":"{name}"' for name in names] + [f'{{"{member}":' for member in _ARGUMENTS]
    functions = [f"{_FUNCTION_OPEN}{name}>" for name in names]
    yield from functions
    yield from (_CALL_OPEN + opening for opening in (*members, *functions))
    for language in _FENCE_LANGUAGES:
        yield from (f"{_FENCE}{language}{bracket}{member}" for member in members for bracket in ("", "["))


class _NoCall(Exception):
    """A text is no call of a tool that was offered."""


def _calls_in(text: str, names: Collection[str]) -> Iterator[ToolCall]:
    if text.startswith(_FENCE):
        fenced = _FENCED.fullmatch(text)
        if fenced is None:
            raise _NoCall
        pieces = [fenced[1]]
    elif text.startswith(_CALL_OPEN):
        pieces = list(_pieces(text, _CALL_OPEN, _CALL_CLOSE))
    else:
        pieces = list(_pieces(text, _FUNCTION_OPEN, _FUNCTION_CLOSE))
    found = (call for piece in pieces for call in _calls_of_piece(piece))
    for place, (name, arguments) in enumerate(found, start=1):
        if not isinstance(name, str) or name not in names:
            raise _NoCall
        yield ToolCall(call_id=f"{_ID_PREFIX}{place}", name=name, arguments=_write(arguments))


def _pieces(text: str, opening: str, closing: str) -> Iterator[str]:
    """Yield what stands between tags, one pair behind the other; the last one may lack its end."""
    at = 0
    while at < len(text):
        if not text.startswith(opening, at):
            raise _NoCall
        end = text.find(closing, at)
        end = len(text) if end < 0 else end
        yield text[at:end] if opening == _FUNCTION_OPEN else text[at + len(opening) : end]
        blanks = _BLANKS.match(text, end + len(closing))
        at = blanks.end() if blanks else end + len(closing)


def _calls_of_piece(piece: str) -> Iterator[tuple[JsonValue, JsonValue]]:
    piece = piece.strip()
    if piece.startswith(_FUNCTION_OPEN):
        yield _function(piece.removesuffix(_FUNCTION_CLOSE))
        return
    decoded = decode_json(piece)
    for one in decoded if isinstance(decoded, list) else [decoded]:
        if not isinstance(one, dict):
            raise _NoCall
        given = next((one[member] for member in _ARGUMENTS if member in one), "{}")
        yield one.get("name"), given


def _function(piece: str) -> tuple[JsonValue, JsonValue]:
    head = _FUNCTION.match(piece)
    if head is None:
        raise _NoCall
    inner = piece[head.end() :].strip()
    if not inner.startswith("<parameter="):
        return head[1], decode_json(inner) if inner else {}
    given: JsonObject = {}
    at = 0
    while (parameter := _PARAMETER.match(inner, at)) is not None:
        given[parameter[1]] = parameter[2].strip("\n")
        at = parameter.end()
    if inner[at:].strip():
        raise _NoCall
    return head[1], given


def _write(arguments: JsonValue) -> str:
    if isinstance(arguments, str):
        arguments = decode_json(arguments)
    if not isinstance(arguments, dict):
        raise _NoCall
    return encode_json(arguments).decode()
