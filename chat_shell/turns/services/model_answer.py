"""Stream one model call with retries, and collect its partial answer."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import cast

from chat_shell.knowledge.domain.citations import CitationParser, CitedDocument, CitedText
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
from chat_shell.tools.domain.written_calls import TextOfCalls
from chat_shell.turns.domain.limits import MAX_ANSWER_CHARACTERS
from chat_shell.turns.domain.turn import NOTHING_REPORTED, ModelAnswered
from chat_shell.turns.services.streamed_calls import StreamedCalls
from shared.clock import Clock
from shared.errors import ModelError, ModelStreamCut
from shared.models.events import (
    ExecutionEvent,
    FinishReason,
    FunctionCallDelta,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    TextLogprobs,
)
from shared.models.execution import remaining_seconds
from shared.models.messages import ToolCall
from shared.retries import RetryPolicy

STEP_CHARACTERS = 4_096
"""How much text is looked through for citations at once: at worst, all of it brackets, some 20 ms of work."""


async def fragments_of(
    model: Model,
    call: ModelCall,
    deadline: datetime,
    *,
    clock: Clock,
    retry: RetryPolicy,
    streamed_calls: Callable[[], StreamedCalls],
) -> AsyncGenerator[ModelFragment]:
    """Stream one model call; a failure before the first fragment may be tried again.

    Of the pieces of tool calls come those that `streamed_calls` lets through, anew for each attempt.

    Raises:
        ModelError: what the last attempt raised.
    """
    retries = 0
    while True:
        begun = False
        calls = streamed_calls()
        try:
            stream = cast(AsyncGenerator[ModelFragment], model.stream(call, deadline))
            async with aclosing(stream) as fragments:
                async for fragment in fragments:
                    shown = calls.feed(fragment) if isinstance(fragment, CallFragment) else fragment
                    if shown is not None:
                        begun = True
                        yield shown
            return
        except ModelError as error:
            wait_seconds = None if begun else retry.wait_seconds(error, retries)
            if wait_seconds is None or wait_seconds >= remaining_seconds(deadline, clock.now()):
                raise
        if retry.on_retry is not None:
            retry.on_retry(call.model)
        await retry.sleep(wait_seconds)
        retries += 1


class PartialAnswer:
    """The answer of a model call so far: unchanged for the log, with citations resolved for the client.

    Where `documents` is None, the client gets it unchanged, too. An answer that is longer than allowed `is_cut`, and
    ends like one that reached its token limit. An answer that consists of calls of `callable_tools`, written as text,
    is read as these calls, and the client gets nothing of it.
    """

    def __init__(
        self,
        documents: Mapping[int, CitedDocument] | None,
        max_characters: int = MAX_ANSWER_CHARACTERS,
        *,
        callable_tools: Collection[str] = (),
    ):
        self._text_of_calls = TextOfCalls(callable_tools)
        self._citations = None if documents is None else CitationParser(documents)
        self._said: list[str] = []
        self._characters_left = max_characters
        self._end: ModelAnswerEnd | None = None
        self.is_cut = False

    @property
    def text(self) -> str:
        """The model's own words so far, those of a refusal included."""
        return "".join(self._said)

    def feed(self, fragment: ModelFragment) -> Iterator[ExecutionEvent]:
        """Take a fragment; yield what the client gets of it, in steps between which others may have their turn."""
        if isinstance(fragment, ModelAnswerEnd):
            self._end = fragment
            return
        if isinstance(fragment, CallFragment | LogprobsFragment):
            yield _beside_text(fragment)
            return
        text = self._fitting(fragment.text)
        if isinstance(fragment, ReasoningFragment):
            yield ReasoningDelta(text=text)
            return
        self._said.append(text)
        if isinstance(fragment, RefusalFragment):
            yield RefusalDelta(text=text)
            return
        yield from self._shown(self._text_of_calls.feed(text))

    def flush(self) -> tuple[ExecutionEvent, ...]:
        """Take note that the text has ended; return the events that were held back."""
        held_back = tuple(self._shown(self._text_of_calls.release()))
        return held_back if self._citations is None else (*held_back, *_events_of(self._citations.flush()))

    def finished(self) -> ModelAnswered:
        """Return the whole answer.

        Raises:
            ModelStreamCut: its end has not come.
        """
        if self.is_cut:
            return ModelAnswered(self.text, (), FinishReason.LENGTH, NOTHING_REPORTED)
        if self._end is None:
            raise ModelStreamCut("the model's answer broke off")
        end = self._end
        written = self._written_calls(end)
        if written:
            reason = FinishReason.TOOL_CALLS
            return ModelAnswered("", written, reason, end.usage, cost=end.cost, left_out=end.left_out)
        return ModelAnswered(
            self.text, end.tool_calls, end.finish_reason, end.usage, end.reasoning, end.cost, end.left_out
        )

    def _written_calls(self, end: ModelAnswerEnd) -> tuple[ToolCall, ...]:
        is_plain = not end.tool_calls and end.finish_reason is FinishReason.STOP
        return self._text_of_calls.take_calls() if is_plain else ()

    def _shown(self, text: str) -> Iterator[ExecutionEvent]:
        for start in range(0, len(text), STEP_CHARACTERS):
            yield from self._cited(text[start : start + STEP_CHARACTERS])

    def _fitting(self, text: str) -> str:
        if len(text) > self._characters_left:
            self.is_cut = True
            text = text[: self._characters_left]
        self._characters_left -= len(text)
        return text

    def _cited(self, text: str) -> tuple[ExecutionEvent, ...]:
        return (TextDelta(text=text),) if self._citations is None else _events_of(self._citations.feed(text))


def _beside_text(fragment: CallFragment | LogprobsFragment) -> ExecutionEvent:
    if isinstance(fragment, LogprobsFragment):
        return TextLogprobs(tokens=fragment.tokens)
    return FunctionCallDelta(call_id=fragment.call_id, name=fragment.name, arguments=fragment.arguments)


def _events_of(cited: CitedText) -> tuple[ExecutionEvent, ...]:
    return (TextDelta(text=cited.text), *cited.citations) if cited.text else ()
