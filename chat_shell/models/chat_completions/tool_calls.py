"""Assemble tool calls from their deltas, in all the forms in which servers send them."""

from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from chat_shell.models.ports import CallFragment
from chat_shell.models.transport.frames import LeftOut
from shared.errors import ModelProtocolViolated
from shared.models.messages import ToolCall
from shared.models.values import JsonObject, JsonValue

MAX_CHARACTERS = 2_000_000
"""The limit for all arguments of an answer, plus one for each delta; models write at most 128,000 tokens."""


@dataclass
class _PartialCall:
    """A tool call, of which further deltas may arrive; `place` counts the calls of the answer."""

    place: int
    call_id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])

    @property
    def whole(self) -> bool:
        """Whether the arguments are complete JSON, so that further deltas belong to another call."""
        try:
            orjson.loads("".join(self.arguments))
        except orjson.JSONDecodeError:
            return False
        return True


class ToolCallAssembler:
    """Collects deltas into calls, in the order in which each call began, and tells `on_piece` of each delta.

    OpenAI's deltas carry an index in each delta, and id and name in the first one only. Other servers leave the index
    out, give every call the index 0, send the name again, or send a new id with each delta; `_find` handles them all.
    """

    def __init__(self, left_out: set[LeftOut], on_piece: Callable[[CallFragment], None]) -> None:
        self._left_out = left_out
        self._on_piece = on_piece
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._characters = 0

    def __bool__(self) -> bool:
        return any(call.name for call in self._calls)

    def feed(self, deltas: JsonValue) -> None:
        """Take a frame's `tool_calls`; what has another shape than a call is left out.

        Raises:
            ModelProtocolViolated: the arguments are too long.
        """
        for delta in deltas if isinstance(deltas, list) else [deltas]:
            function = delta.get("function") or {} if isinstance(delta, dict) else None
            if isinstance(delta, dict) and isinstance(function, dict):
                self._feed_function(function, call_id=_text(delta.get("id")), index=delta.get("index"))
            else:
                self._left_out.add(LeftOut.CALLS)

    def _feed_function(self, function: JsonObject, call_id: str, index: JsonValue) -> None:
        """Take a name and a piece of the arguments, which some servers send as an object and not as text."""
        name = _text(function.get("name"))
        call = self._find(index, call_id, name)
        call.call_id = call.call_id or call_id
        call.name = call.name or name
        arguments = function.get("arguments")
        if isinstance(arguments, dict | list):
            arguments = orjson.dumps(arguments).decode()
        piece = _text(arguments)
        call.arguments.append(piece)
        self._count(piece)
        self._on_piece(CallFragment(place=call.place, call_id=call.call_id, name=call.name, arguments=piece))

    def _count(self, piece: str) -> None:
        self._characters += len(piece) + 1
        if self._characters > MAX_CHARACTERS:
            raise ModelProtocolViolated("the model's provider sent tool calls without an end")

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls that have a name; an id is "" where the server sent none, empty arguments become `{}`."""
        named = tuple(_call(call) for call in self._calls if call.name)
        if len(named) < len(self._calls):
            self._left_out.add(LeftOut.CALLS)
        return named

    def _find(self, index: JsonValue, call_id: str, name: str) -> _PartialCall:
        if isinstance(index, int):
            known = self._by_index.get(index)
            if known is None or _is_another(known, call_id, name):
                known = self._by_index[index] = self._open()
            return known
        known = next((call for call in self._calls if call_id and call.call_id == call_id), None)
        if known is not None:
            return known
        last = self._calls[-1] if self._calls else None
        if last is None or _is_another(last, call_id, name) or (name and last.whole):
            return self._open()
        return last

    def _open(self) -> _PartialCall:
        self._calls.append(_PartialCall(len(self._calls)))
        return self._calls[-1]


def _call(call: _PartialCall) -> ToolCall:
    return ToolCall(call_id=call.call_id, name=call.name, arguments="".join(call.arguments) or "{}")


def _is_another(known: _PartialCall, call_id: str, name: str) -> bool:
    return bool(name and call_id and known.call_id and call_id != known.call_id)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
