"""Assemble the frames of a chat completion into the fragments of the port."""

from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from chat_shell.models.ports import CallFragment, ModelAnswerEnd, ReasoningFragment, RefusalFragment, TextFragment
from chat_shell.models.transport.assembling import FrameAssembler, TextKind
from chat_shell.models.transport.frames import LeftOut, expect_array, expect_object
from chat_shell.models.transport.logprobs import TokenReader
from chat_shell.models.transport.provider_errors import error_of_frame
from chat_shell.models.transport.usage import Counts, read_usage
from shared.errors import ModelProtocolViolated, ModelStreamCut, ModelUnavailable
from shared.models.canonical import read_reasoning
from shared.models.events import FinishReason
from shared.models.messages import ToolCall
from shared.models.values import JsonObject, JsonValue

_TEXT_FIELDS: dict[str, TextKind] = {
    "content": TextFragment,
    "reasoning_content": ReasoningFragment,
    "reasoning": ReasoningFragment,
    "refusal": RefusalFragment,
}

FINISH_REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
    "safety": FinishReason.CONTENT_FILTER,
    "recitation": FinishReason.CONTENT_FILTER,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
}
"""The finish reasons of OpenAI and of servers with its protocol; any other reason counts as `stop`."""


class AnswerAssembler(FrameAssembler):
    """Reads one chat completion; a whole answer is a frame with `message` in place of `delta`.

    Reasoning is kept of answers that call tools or go on from their results (`follows_results`), in the member in which
    it came: DeepSeek refuses a loop of tools without it, and elsewhere no server reads it.
    """

    def __init__(self, *, follows_results: bool = False) -> None:
        super().__init__()
        self._follows_results = follows_results
        self._reasoning: dict[str, list[str]] = {}
        self._calls = ToolCallAssembler(self.left_out, self._add_call_piece)
        self._counts = Counts(self.left_out)
        self._reason = ""
        self._usage: JsonObject = {}

    def _end_of_answer(self) -> ModelAnswerEnd:
        """Return the end of the answer.

        Raises:
            ModelStreamCut: neither finish reason nor end mark has arrived, or the finish reason is `abort`.
            ModelProtocolViolated: the answer is empty.
            ModelUnavailable: the finish reason is `error`.
        """
        if not (self.ended or self.done):
            raise ModelStreamCut("the model's provider broke off before the end of the answer")
        if self._reason == "abort":
            raise ModelStreamCut("the model's provider broke off the answer")
        if self._reason == "error":
            raise ModelUnavailable("the model's provider failed in the middle of the answer")
        reason = self._finish_reason()
        if not self._has_text and not self._calls and reason is FinishReason.STOP:
            raise ModelProtocolViolated("the model's provider sent an empty answer")
        usage = read_usage(self._usage, self._counts)
        calls = self._calls.calls()
        kept = self._reasoning if calls or self._follows_results else {}
        reasoning = read_reasoning({name: "".join(pieces) for name, pieces in kept.items()})
        return ModelAnswerEnd(tool_calls=calls, finish_reason=reason, usage=usage, reasoning=reasoning)

    def _feed_answer(self, answer: JsonObject) -> None:
        if not (answer.get("choices") or answer.get("error")):
            raise ModelProtocolViolated("the model's provider sent an answer of an unknown shape")
        self._feed_frame(answer)

    def _feed_frame(self, frame: JsonObject) -> None:
        choices = frame.get("choices")
        if frame.get("error") or (not choices and frame.get("object") == "error"):
            raise error_of_frame(frame)
        usage = frame.get("usage")
        if usage:
            self._usage = self._counts.report(usage)
        if choices:
            self._feed_choice(expect_object(expect_array(choices)[0] or {}))

    def _feed_choice(self, choice: JsonObject) -> None:
        given = choice.get("delta") or choice.get("message")
        if given:
            delta = expect_object(given)
            for name, value in delta.items():
                if name == "content" and self._kind is TextFragment and isinstance(value, str):
                    self._pieces.append(value)  # the most frequent case, without a further call
                elif value:
                    self._feed_field(name, value, delta)
        reason = choice.get("finish_reason")
        if reason:
            self._reason = str(reason).lower()
            self.ended = True

    def _feed_field(self, name: str, value: JsonValue, delta: JsonObject) -> None:
        kind = _TEXT_FIELDS.get(name)
        if kind is not None:
            # Some servers send the same reasoning in both fields.
            if name != "reasoning" or not delta.get("reasoning_content"):
                self._add_content(kind, value)
                if kind is ReasoningFragment and isinstance(value, str):
                    self._reasoning.setdefault(name, []).append(value)
        elif name == "tool_calls":
            self._calls.feed(value)
        elif name == "function_call":
            self._calls.feed([{"function": value, "index": -1}])

    def _add_content(self, kind: TextKind, content: JsonValue) -> None:
        if isinstance(content, str):
            self._add_text(kind, content)
        else:
            self._add_parts(content)

    def _add_parts(self, parts: JsonValue) -> None:
        """Add content that is a list of parts, as Mistral's reasoning models send it."""
        for part in map(expect_object, expect_array(parts)):
            if part.get("type") == "thinking":
                inner = part.get("thinking")
                pieces = [{"text": inner}] if isinstance(inner, str) else map(expect_object, expect_array(inner))
                texts = [piece.get("text") for piece in pieces]
                self._add_text(ReasoningFragment, "".join(text for text in texts if isinstance(text, str)))
            else:
                text = part.get("text")
                self._add_text(TextFragment, text if isinstance(text, str) else "")

    def _finish_reason(self) -> FinishReason:
        reason = FINISH_REASONS.get(self._reason, FinishReason.STOP)
        if self._calls and reason is FinishReason.STOP:
            return FinishReason.TOOL_CALLS
        if not self._calls and reason is FinishReason.TOOL_CALLS:
            return FinishReason.STOP
        return reason


class WeighedAnswerAssembler(AnswerAssembler):
    """Reads the log probabilities of the answer's tokens, too."""

    def __init__(self, *, follows_results: bool = False) -> None:
        super().__init__(follows_results=follows_results)
        self._tokens = TokenReader()

    def _feed_choice(self, choice: JsonObject) -> None:
        given = choice.get("logprobs")
        self._add_logprobs(self._tokens, given.get("content") if isinstance(given, dict) else None)
        super()._feed_choice(choice)


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
