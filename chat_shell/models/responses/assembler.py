"""Assemble the events of a Responses stream into the fragments of the port."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from chat_shell.models.ports import CallFragment, ModelAnswerEnd, ReasoningFragment, RefusalFragment, TextFragment
from chat_shell.models.responses.encoder import RESPONSES
from chat_shell.models.transport.assembling import FrameAssembler, TextKind
from chat_shell.models.transport.diagnoses import answer_id_of, diagnosis_of_response
from chat_shell.models.transport.frames import LeftOut, expect_array, expect_object
from chat_shell.models.transport.kept_items import MAX_KEPT_CHARACTERS, KeptItems
from chat_shell.models.transport.logprobs import TokenReader
from chat_shell.models.transport.provider_errors import error_of_frame
from chat_shell.models.transport.usage import Counts, read_usage
from shared.errors import ModelProtocolViolated, ModelStreamCut
from shared.models.events import FinishReason
from shared.models.messages import ToolCall
from shared.models.values import JsonObject, JsonValue, objects_in

_DELTAS: Mapping[str, TextKind] = {
    "response.output_text.delta": TextFragment,
    "response.refusal.delta": RefusalFragment,
    "response.reasoning_summary_text.delta": ReasoningFragment,
    "response.reasoning_text.delta": ReasoningFragment,
}
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_TEXT_OF_PART: Mapping[str, tuple[str, TextKind]] = {
    "output_text": ("text", TextFragment),
    "refusal": ("refusal", RefusalFragment),
}
_REASONING_FIELDS = ("type", "id", "summary", "content", "encrypted_content")
"""The fields of a reasoning item that the API takes back; it refuses a `status` of null, which it has sent itself."""

_REASONS = {"content_filter": FinishReason.CONTENT_FILTER}
"""Any other reason of an incomplete answer, `max_output_tokens` among them, is a limit."""


class ResponseAssembler(FrameAssembler):
    """Reads one answer; kinds of events that it does not know are passed over."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[ToolCall] = []
        self._begun_calls: dict[str, CallFragment] = {}
        self._argument_characters = 0
        self._kept = KeptItems(RESPONSES)
        self._streamed: set[str] = set()
        self._reason: FinishReason | None = None
        self._usage: JsonObject = {}
        self._response: JsonObject = {}
        self._counts = Counts(self.left_out)
        self._events: Mapping[str, Callable[[JsonObject], None]] = {
            "response.reasoning_summary_part.added": self._begin_part,
            "response.output_item.added": self._begin_item,
            "response.function_call_arguments.delta": self._add_arguments,
            "response.output_item.done": lambda event: self._end_item(
                _object(event, "item"), str(event.get("output_index"))
            ),
        }

    def _end_of_answer(self) -> ModelAnswerEnd:
        reason = self._reason
        if reason is None:
            raise ModelStreamCut("the model's provider broke off before the end of the answer")
        if reason is FinishReason.STOP and self._calls:
            reason = FinishReason.TOOL_CALLS
        if reason is FinishReason.STOP and not self._has_text:
            raise ModelProtocolViolated("the model's provider sent an empty answer")
        return ModelAnswerEnd(
            tool_calls=tuple(self._calls),
            finish_reason=reason,
            usage=read_usage(self._usage, self._counts),
            reasoning=self._kept.build_reasoning(),
            answer_id=answer_id_of(self._response),
            cache_diagnosis=diagnosis_of_response(self._response),
        )

    def _feed_frame(self, frame: JsonObject) -> None:
        kind = frame.get("type")
        text_kind = _DELTAS.get(kind) if isinstance(kind, str) else None
        if text_kind is not None:
            delta = frame.get("delta")
            if not isinstance(delta, str):
                raise ModelProtocolViolated("the model's provider sent a frame of an unknown shape")
            self._streamed.add(str(frame.get("output_index")) if text_kind is not ReasoningFragment else "")
            self._add_text(text_kind, delta)
        elif kind == "error" or frame.get("error"):
            raise error_of_frame(frame)
        elif kind in _ENDS:
            self._end(_object(frame, "response"))
        elif isinstance(kind, str) and kind in self._events:
            self._events[kind](frame)

    def _feed_answer(self, answer: JsonObject) -> None:
        if answer.get("error") and answer.get("object") != "response":
            raise error_of_frame(answer)
        if answer.get("object") != "response":
            raise ModelProtocolViolated("the model's provider sent an answer of an unknown shape")
        self._end(answer)

    def _begin_part(self, event: JsonObject) -> None:
        if event.get("summary_index"):
            self._add_text(ReasoningFragment, "\n\n")

    def _begin_item(self, event: JsonObject) -> None:
        item = _object(event, "item")
        self._keep_phase(item)
        if item.get("type") == "function_call":
            call_id, name = _text(item.get("call_id")), _text(item.get("name"))
            begun = CallFragment(place=len(self._begun_calls), call_id=call_id, name=name, arguments="")
            self._begun_calls[str(event.get("output_index"))] = begun

    def _add_arguments(self, event: JsonObject) -> None:
        begun = self._begun_calls.get(str(event.get("output_index")))
        piece = _text(event.get("delta"))
        self._argument_characters += len(piece)
        if self._argument_characters > MAX_KEPT_CHARACTERS:
            raise ModelProtocolViolated("the model's provider sent tool calls without an end")
        if begun is not None:
            self._add_call_piece(replace(begun, arguments=piece))

    def _end_item(self, item: JsonObject, index: str) -> None:
        kind = item.get("type")
        if kind == "message" and index not in self._streamed:
            self._keep_phase(item)
            for part in objects_in(item.get("content")):
                self._add_whole_part(part)
        elif kind == "function_call":
            self._add_call(item)
        elif kind == "reasoning":
            self._keep({name: item[name] for name in _REASONING_FIELDS if item.get(name) is not None})

    def _add_call(self, item: JsonObject) -> None:
        call_id, name, arguments = (_text(item.get(field)) for field in ("call_id", "name", "arguments"))
        if name:
            self._calls.append(ToolCall(call_id=call_id, name=name, arguments=arguments or "{}"))
        else:
            self.left_out.add(LeftOut.CALLS)

    def _add_whole_part(self, part: JsonObject) -> None:
        name, kind = _TEXT_OF_PART.get(str(part.get("type")), ("", TextFragment))
        text = part.get(name)
        if isinstance(text, str):
            self._add_text(kind, text)

    def _keep_phase(self, item: JsonObject) -> None:
        """Keep how a message is labelled: a model that gets its labels back does better (`phase` in the RESPONSES)."""
        phase = item.get("phase")
        if item.get("type") == "message" and isinstance(phase, str):
            self._keep({"phase": phase})

    def _keep(self, item: JsonObject) -> None:
        self._end_fragment()
        self._kept.add(item, self._said_characters, len(self._calls))

    def _end(self, response: JsonObject) -> None:
        status = response.get("status")
        if status == "failed":
            raise error_of_frame({"error": response.get("error") or {"code": "server_error"}})
        if status == "cancelled":
            raise ModelStreamCut("the model's provider cancelled the answer")
        if not self._streamed and not self._calls:
            for index, item in enumerate(expect_array(response.get("output") or [])):
                self._end_item(expect_object(item), str(index))
        details = response.get("incomplete_details")
        named = str(details.get("reason")) if isinstance(details, dict) else ""
        is_whole = status == "completed"
        self._reason = FinishReason.STOP if is_whole else _REASONS.get(named, FinishReason.LENGTH)
        self._usage = self._counts.report(response.get("usage"))
        self._response = response
        self.ended = self.done = True


class WeighedResponseAssembler(ResponseAssembler):
    """Reads the log probabilities of the answer's tokens, too."""

    def __init__(self) -> None:
        super().__init__()
        self._tokens = TokenReader()

    def _feed_frame(self, frame: JsonObject) -> None:
        if frame.get("type") == "response.output_text.delta":
            self._add_logprobs(self._tokens, frame.get("logprobs"))
        super()._feed_frame(frame)

    def _add_whole_part(self, part: JsonObject) -> None:
        self._add_logprobs(self._tokens, part.get("logprobs"))
        super()._add_whole_part(part)


def _object(frame: JsonObject, name: str) -> JsonObject:
    return expect_object(frame.get(name))


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
