"""Join text deltas that wait to be sent, so that a busy process sends fewer and larger events."""

from collections.abc import Sequence
from math import inf

from shared.models.events import ExecutionEvent, TextDelta


def coalesce(events: Sequence[ExecutionEvent], max_characters: float = inf) -> tuple[ExecutionEvent, ...]:
    """Join neighbouring text deltas up to `max_characters`; all other events stay, in the same order."""
    if len(events) < 2:
        return tuple(events)
    joined: list[ExecutionEvent] = []
    run: list[TextDelta] = []
    characters = 0
    for event in events:
        is_text = isinstance(event, TextDelta)
        if run and not (is_text and characters + len(event.text) <= max_characters):
            joined.append(_join(run))
            run, characters = [], 0
        if is_text:
            run.append(event)
            characters += len(event.text)
        else:
            joined.append(event)
    if run:
        joined.append(_join(run))
    return tuple(joined)


def _join(run: list[TextDelta]) -> TextDelta:
    return run[0] if len(run) == 1 else TextDelta(text="".join([delta.text for delta in run]))
