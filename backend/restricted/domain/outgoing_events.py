"""The texts in the events of a restricted turn, and the order of events while text among them is held back."""

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from math import ceil
from typing import cast

import orjson

from shared.models.events import (
    CitationAdded,
    ExecutionEvent,
    FunctionCallRequested,
    MessagesAdded,
    ModelCallFinished,
    ReasoningDelta,
    RefusalDelta,
    SearchStarted,
    TextDelta,
    TurnEnd,
    Usage,
)
from shared.models.messages import AddedMessage, AssistantMessage
from shared.prompts.custom_tools import arguments_of, input_of

_JSON_SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*')

Delta = TextDelta | RefusalDelta | ReasoningDelta


TOKENS_STEP = 256


class CutCause(StrEnum):
    """Why the outgoing scan cut an answer."""

    CANARY = "canary"
    PASSAGE = "passage"


class WaitingEvents:
    """A queue of events that wait while text is held back; they leave it in order, a delta also in two parts.

    The index of a citation moves with the text before it, where marks have another length than what they replace.
    """

    def __init__(self) -> None:
        self._events: deque[ExecutionEvent] = deque()
        self._lengths: list[int] = []

    def begin_call(self) -> None:
        """Begin the text of another model call, in which the indexes of citations begin with 0 again."""
        self._lengths.clear()

    def add(self, event: ExecutionEvent) -> None:
        """Append an event."""
        self._events.append(event)

    def take(self, shown: Sequence[str]) -> list[ExecutionEvent]:
        """Remove and return text, with all events that precede the text which stays.

        `shown` holds for each character of the text that leaves what is shown in its place. A delta of which nothing
        is shown is left out.
        """
        taken: list[ExecutionEvent] = []
        at = 0
        while self._events:
            event = self._events[0]
            if isinstance(event, TextDelta | RefusalDelta | ReasoningDelta):
                count = min(len(event.text), len(shown) - at)
                taken.extend(self._replace(event, shown[at : at + count]))
                at += count
                if count < len(event.text):
                    self._events[0] = event.model_copy(update={"text": event.text[count:]})
                    break
            elif isinstance(event, CitationAdded):
                taken.append(event.model_copy(update={"index": sum(self._lengths[: event.index])}))
            else:
                taken.append(event)
            self._events.popleft()
        return taken

    def _replace(self, event: Delta, shown: Sequence[str]) -> list[ExecutionEvent]:
        if isinstance(event, TextDelta):
            self._lengths.extend(map(len, shown))
        text = "".join(shown)
        return [event.model_copy(update={"text": text})] if text else []


def round_usage(usage: Usage) -> Usage:
    """Return counts in steps, without those of the provider's cache: exact ones tell what was read and said."""
    own = usage.model_dump(exclude={"cached_tokens", "cache_write_tokens"})
    return Usage(**{name: count and ceil(count / TOKENS_STEP) * TOKENS_STEP for name, count in own.items()})


def with_rounded_usage(event: ModelCallFinished | TurnEnd) -> ExecutionEvent:
    """Return an event with its usage rounded, and without a cost, which tells it."""
    cost = {"cost": None} if isinstance(event, ModelCallFinished) else {}
    return event.model_copy(update={"usage": round_usage(event.usage), **cost})


def with_texts(event: ExecutionEvent, replaced: Callable[[str], str]) -> ExecutionEvent:
    """Return an event that is no delta with each text that it sends to client or log replaced; names stay."""
    match event:
        case SearchStarted():
            return event.model_copy(update={"queries": tuple(map(replaced, event.queries))})
        case FunctionCallRequested():
            return event.model_copy(update={"arguments": _with_strings(event.arguments, replaced)})
        case MessagesAdded():
            return event.model_copy(
                update={"messages": tuple(_message_with(message, replaced) for message in event.messages)}
            )
        case _:
            return event


def _message_with(message: AddedMessage, replaced: Callable[[str], str]) -> AddedMessage:
    if not isinstance(message, AssistantMessage):
        return message
    calls = tuple(
        call.model_copy(update={"arguments": _with_strings(call.arguments, replaced)}) for call in message.tool_calls
    )
    # What only the provider reads cannot be scanned, so nothing of it is kept of a restricted turn.
    return AssistantMessage(text=replaced(message.text), tool_calls=calls)


def _with_strings(arguments: str, replaced: Callable[[str], str]) -> str:
    """Return arguments with their strings and numbers replaced, where they are JSON; else replaced as one text.

    A number that is replaced becomes a string. Everything else stays as it is written. Of broken JSON that names the
    input of a custom tool this input is left, as it is shown, so that no escape hides a figure.
    """
    try:
        orjson.loads(arguments)
    except orjson.JSONDecodeError:
        given = input_of(arguments)
        return replaced(arguments) if given == arguments else arguments_of(replaced(given))

    def replace_scalar(match: re.Match[str]) -> str:
        written = match[0]
        text = orjson.loads(written) if written.startswith('"') else written
        shown = replaced(text)
        return written if shown == text else orjson.dumps(shown).decode()

    return _JSON_SCALAR.sub(replace_scalar, arguments)


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
    """Yield arguments as written and, if they are JSON, their decoded strings, so that escapes hide no text.

    What a custom tool's call shows of them is read from broken JSON, too.
    """
    yield arguments
    if (given := input_of(arguments)) != arguments:
        yield given
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
