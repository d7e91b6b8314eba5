"""What the events of a restricted turn say, and their order while text among them is held back."""

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
    """What an answer was cut for."""

    CANARY = "canary"
    PASSAGE = "passage"
    FIGURE = "figure"


class WaitingEvents:
    """Events behind text that is held back; they go in their order, a delta also in parts."""

    def __init__(self) -> None:
        self._events: deque[ExecutionEvent] = deque()

    def add(self, event: ExecutionEvent) -> None:
        """Put an event behind the others."""
        self._events.append(event)

    def take(self, count: int) -> list[ExecutionEvent]:
        """Let go so many characters of text, with all events that stand before what stays."""
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
    """Yield what an event that is no delta says to a client or to the log; results of tools have been judged."""
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
    """Yield arguments as they are written and, where they are JSON, as they are read: escapes hide nothing."""
    yield arguments
    try:
        read = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return
    yield "\n".join(_strings(read))


def _strings(read: object) -> list[str]:
    """Return the strings, keys and numbers of JSON in its order, however deep it goes."""
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
