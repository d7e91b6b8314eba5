"""Joining deltas that are there at the same time, so that a busy process sends fewer and larger events."""

from collections.abc import Iterable

from shared.models.events import ExecutionEvent, TextDelta


def coalesced(events: Iterable[ExecutionEvent]) -> list[ExecutionEvent]:
    """Join runs of text deltas; the text and the order of everything else stay."""
    joined: list[ExecutionEvent] = []
    pieces: list[str] = []
    for event in events:
        if isinstance(event, TextDelta):
            pieces.append(event.text)
            continue
        if pieces:
            joined.append(_delta(pieces))
            pieces = []
        joined.append(event)
    if pieces:
        joined.append(_delta(pieces))
    return joined


def _delta(pieces: list[str]) -> TextDelta:
    return TextDelta(text="".join(pieces))
