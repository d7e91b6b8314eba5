"""Stream events of a response, as clients get them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

import orjson

from backend.conversations.domain.responses import ResponseStatus
from backend.openai_api.domain.response_object import ResponseBody, build_created_body, show_body
from shared.models.events import ErrorReport
from shared.models.values import JsonObject, JsonValue

UnnumberedEvent = JsonObject
"""An event that has no `sequence_number` yet."""

TERMINAL_EVENTS = {
    ResponseStatus.COMPLETED: "response.completed",
    ResponseStatus.INCOMPLETE: "response.incomplete",
    ResponseStatus.CANCELLED: "response.incomplete",
    ResponseStatus.FAILED: "response.failed",
}
TERMINAL_TYPES = frozenset(TERMINAL_EVENTS.values())


class LoggedEvent(NamedTuple):
    """An event with its number and its encoded JSON text. A named tuple, because there is one for each delta."""

    sequence_number: int
    type: str
    body: bytes


EVENT_BYTES_BESIDE = 136
"""What CPython takes for an event beside its text: a tuple of three, a number, the header of the bytes, its place."""


def bytes_in(events: Iterable[LoggedEvent]) -> int:
    """Return the memory that events take."""
    count = 0
    for event in events:  # without a function of its own, as a list has it: this runs for each delta
        count += len(event.body) + EVENT_BYTES_BESIDE
    return count


def encode_event(event: Mapping[str, JsonValue]) -> LoggedEvent:
    """Encode an event that carries its `type` and `sequence_number`."""
    # orjson returns its whole buffer, several kilobytes for a small event; the copy has the exact size.
    body = bytes(memoryview(orjson.dumps(event)))
    return LoggedEvent(cast(int, event["sequence_number"]), cast(str, event["type"]), body)


def first_events(body: ResponseBody) -> tuple[LoggedEvent, ...]:
    """Rebuild the events that say nothing but that the response began, numbers 0 and 1."""
    begun = build_created_body(body)
    return build_created_event(body), encode_event(
        {"type": "response.in_progress", "sequence_number": 1, "response": begun}
    )


def build_created_event(body: ResponseBody) -> LoggedEvent:
    """Rebuild the first event, number 0, from a stored response object."""
    return encode_event({"type": "response.created", "sequence_number": 0, "response": build_created_body(body)})


def terminal_event(status: ResponseStatus, body: ResponseBody, number: int, *, with_results: bool) -> LoggedEvent:
    """Rebuild the terminal event from a stored response object."""
    shown = show_body(body, with_results=with_results)
    return encode_event({"type": TERMINAL_EVENTS[status], "sequence_number": number, "response": shown})


def break_off(body: ResponseBody, report: ErrorReport, newest: int) -> tuple[LoggedEvent, ...]:
    """Build the end of a stream that says nothing of how its turn ends: an error event behind the newest event.

    The turn goes on, or has ended well: no event tells of a response that failed.
    """
    first = (build_created_event(body),) if newest < 0 else ()
    return (*first, encode_event({"sequence_number": max(newest, 0) + 1, **error_event(report)}))


def error_event(report: ErrorReport) -> UnnumberedEvent:
    """Build an error event in both forms: nested as Open Responses demands, and flat as OpenAI's types declare.

    Its code is a free text, other than that of the response's own error.
    """
    flat = {"code": report.code, "message": report.message, "param": report.param}
    return {"type": "error", **flat, "error": {"type": report.type, **flat}}
