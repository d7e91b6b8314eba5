"""Assemble the events of a Messages stream into the fragments of the port."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import orjson

from chat_shell.models.anthropic_messages.thinking import ANTHROPIC_MESSAGES
from chat_shell.models.ports import CallFragment, ModelAnswerEnd, ReasoningFragment, TextFragment
from chat_shell.models.transport.assembling import FrameAssembler
from chat_shell.models.transport.diagnoses import answer_id_of, diagnosis_of_message
from chat_shell.models.transport.frames import LeftOut, expect_array, expect_object
from chat_shell.models.transport.kept_items import MAX_KEPT_CHARACTERS, KeptItems
from chat_shell.models.transport.provider_errors import error_of_frame
from chat_shell.models.transport.usage import Counts
from shared.errors import CONTEXT_EXCEEDED, ModelContextOverflow, ModelProtocolViolated, ModelStreamCut
from shared.models.events import FinishReason, Usage
from shared.models.messages import ToolCall
from shared.models.values import JsonObject

_REASONS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "tool_use": FinishReason.TOOL_CALLS,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "refusal": FinishReason.CONTENT_FILTER,
}
"""Any other reason counts as the end of the turn; `pause_turn` is an error, as no tool runs at the provider here."""


@dataclass
class _Block:
    """A content block, of which further deltas may arrive; `pieces` are thinking, or arguments of a tool.

    `place` counts the calls of tools that began before it.
    """

    start: JsonObject
    place: int
    pieces: list[str] = field(default_factory=list[str])
    signature: str = ""


class MessageAssembler(FrameAssembler):
    """Reads one answer; kinds of events, blocks and deltas that it does not know are passed over."""

    def __init__(self, *, is_diagnosed: bool = False) -> None:
        super().__init__()
        self._is_diagnosed = is_diagnosed
        self._answer: JsonObject = {}
        self._blocks: dict[str, _Block] = {}
        self._calls: list[ToolCall] = []
        self._begun_calls = 0
        self._kept = KeptItems(ANTHROPIC_MESSAGES)
        self._characters = 0
        self._reason = ""
        self._usage: JsonObject = {}
        self._counts = Counts(self.left_out)
        self._events: Mapping[str, Callable[[JsonObject], None]] = {
            "message_start": self._begin,
            "content_block_start": self._begin_block,
            "content_block_delta": self._extend_block,
            "content_block_stop": self._end_block,
            "message_delta": self._end,
            "message_stop": self._stop,
        }
        self._deltas: Mapping[str, Callable[[_Block, JsonObject], None]] = {
            "text_delta": self._add_answer,
            "thinking_delta": self._add_thinking,
            "signature_delta": self._add_signature,
            "input_json_delta": self._add_arguments,
        }

    def _end_of_answer(self) -> ModelAnswerEnd:
        if not (self.ended or self.done):
            raise ModelStreamCut("the model's provider broke off before the end of the answer")
        if self._reason == "pause_turn":
            raise ModelStreamCut("the model's provider paused the answer")
        is_silent = not self._has_text and not self._calls
        if self._reason == "model_context_window_exceeded" and is_silent:
            raise ModelContextOverflow(f"{CONTEXT_EXCEEDED} shorter than prompt and answer")
        reason = _REASONS.get(self._reason, FinishReason.STOP)
        if reason in (FinishReason.STOP, FinishReason.TOOL_CALLS):
            if is_silent:
                raise ModelProtocolViolated("the model's provider sent an empty answer")
            reason = FinishReason.TOOL_CALLS if self._calls else FinishReason.STOP
        told = self._answer if self._is_diagnosed else {}
        return ModelAnswerEnd(
            tool_calls=tuple(self._calls),
            finish_reason=reason,
            usage=usage_of(self._usage, self._counts),
            reasoning=self._kept.build_reasoning(),
            answer_id=answer_id_of(told),
            cache_diagnosis=diagnosis_of_message(told),
        )

    def _feed_frame(self, frame: JsonObject) -> None:
        kind = frame.get("type")
        if kind == "error" or frame.get("error"):
            raise error_of_frame(frame)
        handle = self._events.get(str(kind))
        if handle is not None:
            handle(frame)

    def _feed_answer(self, answer: JsonObject) -> None:
        if answer.get("error"):
            raise error_of_frame(answer)
        if answer.get("type") != "message":
            raise ModelProtocolViolated("the model's provider sent an answer of an unknown shape")
        self._answer = answer
        for index, block in enumerate(expect_array(answer.get("content") or [])):
            self._begin_block({"index": index, "content_block": block})
            self._end_block({"index": index})
        self._end({"delta": {"stop_reason": answer.get("stop_reason")}, "usage": answer.get("usage")})

    def _begin(self, frame: JsonObject) -> None:
        self._answer = expect_object(frame.get("message"))
        self._note_usage(self._answer)

    def _begin_block(self, frame: JsonObject) -> None:
        block = _Block(expect_object(frame.get("content_block")), self._begun_calls)
        self._blocks[_place(frame)] = block
        kind, start = block.start.get("type"), block.start
        if kind == "tool_use":
            self._begun_calls += 1
        elif kind == "text":
            self._add_answer(block, start)
        elif kind == "thinking":
            self._add_thinking(block, start)
            self._add_signature(block, start)

    def _extend_block(self, frame: JsonObject) -> None:
        block = self._blocks.get(_place(frame))
        if block is None:
            raise ModelProtocolViolated("the model's provider sent a piece of a block that has not begun")
        delta = expect_object(frame.get("delta"))
        handle = self._deltas.get(str(delta.get("type")))
        if handle is not None:
            handle(block, delta)

    def _end_block(self, frame: JsonObject) -> None:
        block = self._blocks.pop(_place(frame), None)
        kind = block.start.get("type") if block is not None else None
        if block is None:
            return
        if kind == "tool_use":
            self._add_call(block)
        elif kind == "thinking" and block.signature:
            self._keep({"type": "thinking", "thinking": "".join(block.pieces), "signature": block.signature})
        elif kind == "redacted_thinking":
            self._keep({"type": "redacted_thinking", "data": block.start.get("data")})

    def _add_call(self, block: _Block) -> None:
        call_id, name = _read_given(block.start, "id"), _read_given(block.start, "name")
        if not name:
            self.left_out.add(LeftOut.CALLS)
            return
        arguments = "".join(block.pieces) or orjson.dumps(block.start.get("input") or {}).decode()
        self._calls.append(ToolCall(call_id=call_id, name=name, arguments=arguments))

    def _keep(self, block: JsonObject) -> None:
        self._end_fragment()
        self._kept.add(block, self._said_characters, len(self._calls))

    def _end(self, frame: JsonObject) -> None:
        self._note_usage(frame)
        reason = expect_object(frame.get("delta") or {}).get("stop_reason")
        if isinstance(reason, str):
            self._reason = reason
            self.ended = True

    def _stop(self, frame: JsonObject) -> None:
        self.done = True

    def _note_usage(self, holder: JsonObject) -> None:
        """Take counts, which are cumulative: a later one replaces the earlier."""
        reported = self._counts.report(holder.get("usage"))
        self._usage |= {name: value for name, value in reported.items() if value is not None}

    def _add_answer(self, block: _Block, given: JsonObject) -> None:
        self._add_text(TextFragment, _text(given, "text"))

    def _add_thinking(self, block: _Block, given: JsonObject) -> None:
        thought = _text(given, "thinking")
        self._count(thought)
        block.pieces.append(thought)
        self._add_text(ReasoningFragment, thought)

    def _add_signature(self, block: _Block, given: JsonObject) -> None:
        block.signature += self._count(_text(given, "signature"))

    def _add_arguments(self, block: _Block, given: JsonObject) -> None:
        piece, start = self._count(_text(given, "partial_json")), block.start
        block.pieces.append(piece)
        if start.get("type") == "tool_use":
            call_id, name = _read_given(start, "id"), _read_given(start, "name")
            self._add_call_piece(CallFragment(place=block.place, call_id=call_id, name=name, arguments=piece))

    def _count(self, piece: str) -> str:
        self._characters += len(piece) + 1
        if self._characters > MAX_KEPT_CHARACTERS:
            raise ModelProtocolViolated("the model's provider sent a block without an end")
        return piece


def _text(given: JsonObject, name: str) -> str:
    text = given.get(name)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise ModelProtocolViolated("the model's provider sent a frame of an unknown shape")
    return text


def _read_given(start: JsonObject, name: str) -> str:
    value = start.get(name)
    return value if isinstance(value, str) else ""


def _place(frame: JsonObject) -> str:
    return str(frame.get("index"))


def usage_of(reported: JsonObject, counts: Counts) -> Usage:
    """Read a `usage` object, in which input read from the cache or written to it does not count as input."""
    fresh, cached, written = (
        counts.read(reported, (name,))
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    return Usage(
        input_tokens=None if fresh is None else fresh + (cached or 0) + (written or 0),
        cached_tokens=cached,
        cache_write_tokens=written,
        output_tokens=counts.read(reported, ("output_tokens",)),
        reasoning_tokens=counts.read(reported, ("output_tokens_details", "thinking_tokens")),
    )
