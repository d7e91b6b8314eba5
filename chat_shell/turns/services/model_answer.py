"""The answer of one model call while it comes."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import cast

from chat_shell.models.ports import (
    CallFragment,
    LogprobsFragment,
    Model,
    ModelAnswerEnd,
    ModelCall,
    ModelFragment,
    ReasoningFragment,
    RefusalFragment,
)
from chat_shell.turns.domain.turn import NOTHING_REPORTED, ModelAnswered
from chat_shell.turns.ports import AnswerText, Emit
from chat_shell.turns.services.streamed_calls import StreamedCalls
from shared.errors import ModelStreamCut
from shared.models.events import (
    ExecutionEvent,
    FinishReason,
    FunctionCallDelta,
    ReasoningDelta,
    RefusalDelta,
    TextLogprobs,
)
from shared.models.messages import ToolCall

MAX_ANSWER_CHARACTERS = 2_000_000
"""Limit of one model call's text and reasoning: four times the longest possible answer of current models (128,000
tokens), so that only a model that repeats itself without end reaches it."""


class PartialAnswer:
    """The answer of a model call so far: unchanged for the log, and as `text` shows it to the client.

    An answer that is longer than allowed `is_cut`, and ends like one that reached its token limit. It `has_begun` once
    there was a fragment of it, but for pieces of calls that `streamed_calls` does not let through.
    """

    def __init__(self, text: AnswerText, streamed_calls: StreamedCalls):
        self._text = text
        self._streamed_calls = streamed_calls
        self._said: list[str] = []
        self._characters_left = MAX_ANSWER_CHARACTERS
        self._end: ModelAnswerEnd | None = None
        self.has_begun = False
        self.is_cut = False

    async def receive(self, model: Model, call: ModelCall, deadline: datetime, emit: Emit) -> None:
        """Stream the answer to a call, and emit what the client gets of it.

        Raises:
            ModelError: the model failed; what came before has been emitted.
        """
        async with aclosing(cast(AsyncGenerator[ModelFragment], model.stream(call, deadline))) as fragments:
            async for fragment in fragments:
                for event in self._feed(fragment):
                    await emit(event)
                if self.is_cut:
                    break

    @property
    def said(self) -> str:
        """The model's own words so far, those of a refusal included."""
        return "".join(self._said)

    def flush(self) -> Iterable[ExecutionEvent]:
        """Take note that the text has ended; return the events that were held back."""
        return self._text.flush()

    def finish(self) -> ModelAnswered:
        """Return the whole answer.

        Raises:
            ModelStreamCut: its end has not come.
        """
        if self.is_cut:
            return ModelAnswered(self.said, (), FinishReason.LENGTH, NOTHING_REPORTED)
        if self._end is None:
            raise ModelStreamCut("the model's answer broke off")
        end = self._end
        whole = ModelAnswered(
            text=self.said,
            tool_calls=end.tool_calls,
            finish_reason=end.finish_reason,
            usage=end.usage,
            reasoning=end.reasoning,
            cost=end.cost,
            left_out=end.left_out,
            cache_diagnosis=end.cache_diagnosis,
        )
        written = self._read_written_calls(end)
        if not written:
            return whole
        return replace(whole, text="", tool_calls=written, finish_reason=FinishReason.TOOL_CALLS, reasoning=None)

    def _feed(self, fragment: ModelFragment) -> Iterable[ExecutionEvent]:
        if isinstance(fragment, CallFragment):
            return self._piece_of_call(fragment)
        self.has_begun = True
        if isinstance(fragment, ModelAnswerEnd):
            self._end = fragment
            return ()
        if isinstance(fragment, LogprobsFragment):
            return (TextLogprobs(tokens=fragment.tokens),)
        text = self._fit(fragment.text)
        if isinstance(fragment, ReasoningFragment):
            return (ReasoningDelta(text=text),)
        self._said.append(text)
        return (RefusalDelta(text=text),) if isinstance(fragment, RefusalFragment) else self._text.feed(text)

    def _piece_of_call(self, piece: CallFragment) -> Iterable[ExecutionEvent]:
        shown = self._streamed_calls.feed(piece)
        if shown is None:
            return ()
        self.has_begun = True
        return (FunctionCallDelta(call_id=shown.call_id, name=shown.name, arguments=shown.arguments),)

    def _read_written_calls(self, end: ModelAnswerEnd) -> tuple[ToolCall, ...]:
        is_plain = not end.tool_calls and end.finish_reason is FinishReason.STOP
        return self._text.take_calls() if is_plain else ()

    def _fit(self, text: str) -> str:
        if len(text) > self._characters_left:
            self.is_cut = True
            text = text[: self._characters_left]
        self._characters_left -= len(text)
        return text
