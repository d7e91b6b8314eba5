"""The events of a made-up turn: what the events of most turns have in common, for a compressor to begin with."""

from collections.abc import Iterator
from datetime import UTC, datetime

from backend.conversations.domain.responses import ConversationSettings
from backend.openai_api.domain.response_events import LoggedEvent
from backend.openai_api.domain.response_object import finished, new_body
from backend.openai_api.domain.response_projection import ResponseProjection
from backend.openai_api.domain.turn_request import TurnRequest
from shared.ids import IdPrefix
from shared.models.events import (
    CitationAdded,
    FinishReason,
    ReasoningDelta,
    SearchFinished,
    SearchStarted,
    TextDelta,
    Usage,
)

_BEGAN_AT = datetime.fromtimestamp(0, UTC)
_USAGE = Usage(input_tokens=100, cached_tokens=0, cache_write_tokens=0, output_tokens=1, reasoning_tokens=0)
_EXECUTION = (
    ReasoningDelta(text=" "),
    SearchStarted(call_id="call", queries=("",)),
    SearchFinished(call_id="call", failed=False, results=()),
    TextDelta(text=" "),
    CitationAdded(number=1, file_id="", filename="", index=0),
)


def typical_events() -> tuple[LoggedEvent, ...]:
    """Return the events of a turn that reasons, searches, answers and cites, with default settings and no real text."""
    return tuple(_events())


def _events() -> Iterator[LoggedEvent]:
    settings = ConversationSettings(model="", instructions="", functions=(), knowledge_base_ids=())
    body = new_body(TurnRequest(input=""), settings, _id(IdPrefix.RESPONSE), _id(IdPrefix.CONVERSATION), _BEGAN_AT)
    projection = ResponseProjection(body, _id, with_results=True)
    yield from projection.start()
    for event in _EXECUTION:
        yield from projection.feed(event)
    _, last = projection.finish(finished(FinishReason.STOP, _USAGE), int(_BEGAN_AT.timestamp()))
    yield from last


def _id(prefix: IdPrefix) -> str:
    return f"{prefix}_"
