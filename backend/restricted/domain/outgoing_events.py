"""The texts in the events of a restricted turn, and the order of events while text among them is held back."""

from collections import deque
from collections.abc import Iterator
from enum import StrEnum
from typing import cast

import orjson

from shared.models.events import (
    ExecutionEvent,
    FunctionCallRequested,
    MessagesAdded,
    ReasoningDelta,
    RefusalDelta,
    SearchStarted,
    TextDelta,
)
from shared.models.messages import AssistantMessage

Delta = TextDelta | RefusalDelta | ReasoningDelta


class CutCause(StrEnum):
    """Why the outgoing scan cut an answer."""

    CANARY = "canary"
    PASSAGE = "passage"
    FIGURE = "figure"


class WaitingEvents:
    """A queue of events that wait while text is held back; they leave it in order, a delta also in two parts."""

    def __init__(self) -> None:
        self._events: deque[ExecutionEvent] = deque()

    def add(self, event: ExecutionEvent) -> None:
        """Append an event."""
        self._events.append(event)

    def take(self, count: int) -> list[ExecutionEvent]:
        """Remove and return `count` characters of text, with all events that precede the text which stays."""
        taken: list[ExecutionEvent] = []
        while self._events:
            event = self._events[0]
            if isinstance(event, TextDelta | RefusalDelta | ReasoningDelta):
                if len(event.text) > count:
                    break
                count -= len(event.text)
            taken.append(self._events.popleft())
        if count and self._events:
            partial = cast("Delta", self._events[0])
            taken.append(partial.model_copy(update={"text": partial.text[:count]}))
            self._events[0] = partial.model_copy(update={"text": partial.text[count:]})
        return taken


def texts_of(event: ExecutionEvent) -> Iterator[str]:
    """Yield the texts that an event which is no delta sends to client or log; tool results were checked before."""
    match event:
        case SearchStarted():
            yield from event.queries
        case FunctionCallRequested():
            yield event.name
            yield from _texts_in(event.arguments)
        case MessagesAdded():
            for message in event.messages:
                if isinstance(message, AssistantMessage):
                    yield message.text
                    for call in message.tool_calls:
                        yield call.name
                        yield from _texts_in(call.arguments)
        case _:
            return


def _texts_in(arguments: str) -> Iterator[str]:
    """Yield arguments as written and, if they are JSON, their decoded strings, so that escapes hide no text."""
    yield arguments
    try:
        read = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return
    yield "\n".join(_strings(read))


def _strings(read: object) -> list[str]:
    """Return the strings, keys and numbers of JSON in document order, at any depth."""
    found: list[str] = []
    left = [read]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left.extend(inner for pair in reversed(cast("dict[str, object]", value).items()) for inner in pair[::-1])
        elif isinstance(value, list):
            left.extend(reversed(cast("list[object]", value)))
        elif value is not None:
            found.append(str(value))
    return found
