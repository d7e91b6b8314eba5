"""Join text deltas that wait to be sent, so that a busy process sends fewer and larger events."""

from collections.abc import Iterable
from math import inf

from shared.models.events import ExecutionEvent, TextDelta


def coalesced(events: Iterable[ExecutionEvent], max_characters: float = inf) -> tuple[ExecutionEvent, ...]:
    """Join neighbouring text deltas up to `max_characters`; all other events stay, in the same order."""
    joined: list[ExecutionEvent] = []
    pieces: list[str] = []
    characters = 0
    for event in events:
        is_text = isinstance(event, TextDelta)
        if pieces and not (is_text and characters + len(event.text) <= max_characters):
            joined.append(TextDelta(text="".join(pieces)))
            pieces, characters = [], 0
        if is_text:
            pieces.append(event.text)
            characters += len(event.text)
        else:
            joined.append(event)
    if pieces:
        joined.append(TextDelta(text="".join(pieces)))
    return tuple(joined)
