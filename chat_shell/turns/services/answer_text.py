"""The text of an answer as clients get it: with citations resolved, and without calls that it was written for."""

from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from chat_shell.knowledge.domain.citations import CitationParser, CitedDocument, CitedText
from chat_shell.tools.domain.written_calls import TextOfCalls
from shared.models.events import ExecutionEvent, TextDelta
from shared.models.messages import ToolCall

STEP_CHARACTERS = 4_096
"""How much text is looked through for citations at once: at worst, all of it brackets, some 20 ms of work."""


class ReadText:
    """Implements `AnswerText`. Where `documents` is None, the text stays as it is.

    An answer that consists of calls of `callable_tools`, written as text, stands for these calls.
    """

    def __init__(self, documents: Mapping[int, CitedDocument] | None, callable_tools: Collection[str]) -> None:
        self._citations = None if documents is None else CitationParser(documents)
        self._text_of_calls = TextOfCalls(callable_tools)

    def feed(self, text: str) -> Iterable[ExecutionEvent]:
        """Take more text; return what may be shown, in steps between which others may have their turn."""
        return self._show(self._text_of_calls.feed(text))

    def flush(self) -> tuple[ExecutionEvent, ...]:
        """Return what was held back."""
        held_back = tuple(self._show(self._text_of_calls.release()))
        return held_back if self._citations is None else (*held_back, *_events_of(self._citations.flush()))

    def take_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls that the ended text stands for."""
        return self._text_of_calls.take_calls()

    def _show(self, text: str) -> Iterable[ExecutionEvent]:
        if len(text) <= STEP_CHARACTERS:
            return self._read(text)
        steps = (text[start : start + STEP_CHARACTERS] for start in range(0, len(text), STEP_CHARACTERS))
        return chain.from_iterable(map(self._read, steps))

    def _read(self, step: str) -> tuple[ExecutionEvent, ...]:
        if self._citations is not None:
            return _events_of(self._citations.feed(step))
        return (TextDelta(text=step),) if step else ()


def _events_of(cited: CitedText) -> tuple[ExecutionEvent, ...]:
    return (TextDelta(text=cited.text), *cited.citations) if cited.text else ()
