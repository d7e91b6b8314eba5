"""Assemble the frames of a chat completion into the fragments of the port."""

from collections.abc import Iterator

from chat_shell.models.chat_completions.tool_calls import ToolCallAssembler
from chat_shell.models.chat_completions.usage import read_usage
from chat_shell.models.ports import ModelAnswerEnd, ModelFragment, ReasoningFragment, RefusalFragment, TextFragment
from chat_shell.models.transport.frames import expect_array, expect_object, parse_frame
from chat_shell.models.transport.provider_errors import error_of_frame
from shared.errors import ModelError, ModelProtocolViolated, ModelStreamCut, ModelUnavailable
from shared.models.events import FinishReason
from shared.models.values import JsonObject, JsonValue

_TextKind = type[TextFragment] | type[ReasoningFragment] | type[RefusalFragment]

_TEXT_FIELDS: dict[str, _TextKind] = {
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
"""The finish reasons of OpenAI and of servers that speak its protocol; any other one counts as `stop`."""


class AnswerAssembler:
    """Takes frames; returns text as it comes, and tool calls, finish reason and usage at the end.

    `ended` says that the finish reason has come, `done` that the stream's end mark has. `frame_count` counts the
    frames, so that a caller can tell a frame from a comment.
    """

    def __init__(self) -> None:
        self.done = False
        self.ended = False
        self.frame_count = 0
        self._calls = ToolCallAssembler()
        self._reason = ""
        self._usage: JsonObject = {}
        self._said_something = False
        self._kind: _TextKind = TextFragment
        self._run: list[str] = []
        self._fragments: list[ModelFragment] = []

    def feed(self, payloads: list[bytes]) -> Iterator[ModelFragment]:
        """Take the payloads that one read brought; yield one fragment for each run of one kind of text.

        Raises:
            ModelError: a frame is garbage, or reports a failure; what came before it has been yielded.
        """
        try:
            self._feed_payloads(payloads)
        except ModelError:
            yield from self._take()
            raise
        yield from self._take()

    def feed_frame(self, frame: JsonObject) -> list[ModelFragment]:
        """Take one parsed frame, or a whole answer, which is a frame with `message` in place of `delta`."""
        self._feed_frame(frame)
        return self._take()

    def finish(self) -> ModelAnswerEnd:
        """Return the end of the answer.

        Raises:
            ModelStreamCut: neither finish reason nor end mark has come.
            ModelProtocolViolated: there is nothing in the answer.
            ModelUnavailable: the provider says that it failed on the way.
        """
        if not (self.ended or self.done):
            raise ModelStreamCut("the model's provider broke off before the end of the answer")
        if self._reason == "abort":
            raise ModelStreamCut("the model's provider broke off the answer")
        if self._reason == "error":
            raise ModelUnavailable("the model's provider failed in the middle of the answer")
        reason = self._finish_reason()
        if not self._said_something and not self._calls and reason is FinishReason.STOP:
            raise ModelProtocolViolated("the model's provider sent an empty answer")
        return ModelAnswerEnd(tool_calls=self._calls.calls(), finish_reason=reason, usage=read_usage(self._usage))

    def _feed_payloads(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            if self.done:
                break
            if payload.startswith(b"[DONE]"):
                self.done = True
            elif payload:
                self._feed_frame(parse_frame(payload))

    def _feed_frame(self, frame: JsonObject) -> None:
        self.frame_count += 1
        choices = frame.get("choices")
        if frame.get("error") or (not choices and frame.get("object") == "error"):
            raise error_of_frame(frame)
        usage = frame.get("usage")
        if usage:
            self._usage = expect_object(usage)
        if choices:
            self._feed_choice(expect_object(expect_array(choices)[0]))

    def _feed_choice(self, choice: JsonObject) -> None:
        given = choice.get("delta") or choice.get("message")
        if given:
            delta = expect_object(given)
            for name, value in delta.items():
                if name == "content" and self._kind is TextFragment and isinstance(value, str):
                    self._run.append(value)  # the common case of a token, kept short
                elif value:
                    self._feed_field(name, value, delta)
        reason = choice.get("finish_reason")
        if reason:
            self._reason = str(reason).lower()
            self.ended = True

    def _feed_field(self, name: str, value: JsonValue, delta: JsonObject) -> None:
        kind = _TEXT_FIELDS.get(name)
        if kind is not None:
            # Some servers send the thinking under both names.
            if name != "reasoning" or not delta.get("reasoning_content"):
                self._say(kind, value)
        elif name == "tool_calls":
            for call in expect_array(value):
                self._calls.feed(expect_object(call))
        elif name == "function_call":
            self._calls.feed_function(expect_object(value), index=-1)

    def _say(self, kind: _TextKind, text: JsonValue) -> None:
        if not isinstance(text, str):
            self._say_parts(text)
            return
        if kind is not self._kind:
            self._close_run()
            self._kind = kind
        self._run.append(text)

    def _say_parts(self, parts: JsonValue) -> None:
        """Take content in parts, as Mistral's reasoning models send it."""
        for part in map(expect_object, expect_array(parts)):
            if part.get("type") == "thinking":
                inner = part.get("thinking")
                pieces = [{"text": inner}] if isinstance(inner, str) else map(expect_object, expect_array(inner))
                texts = [piece.get("text") for piece in pieces]
                self._say(ReasoningFragment, "".join(text for text in texts if isinstance(text, str)))
            elif isinstance(part.get("text"), str):
                self._say(TextFragment, part["text"])

    def _close_run(self) -> None:
        text = "".join(self._run)
        self._run.clear()
        if text:
            self._said_something = True
            self._fragments.append(self._kind(text=text))

    def _take(self) -> list[ModelFragment]:
        if self._run:
            self._close_run()
        fragments, self._fragments = self._fragments, []
        return fragments

    def _finish_reason(self) -> FinishReason:
        reason = FINISH_REASONS.get(self._reason, FinishReason.STOP)
        if self._calls and reason is FinishReason.STOP:
            return FinishReason.TOOL_CALLS
        if not self._calls and reason is FinishReason.TOOL_CALLS:
            return FinishReason.STOP
        return reason
