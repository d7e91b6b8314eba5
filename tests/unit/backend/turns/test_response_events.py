"""Events as they are kept."""

import tracemalloc

from backend.turns.domain.response_events import encode_event

EVENTS = 200
MAX_BYTES_AN_EVENT = 1500
"""Of it a third is the event's text; the rest are the objects around it."""


def test_a_kept_event_takes_little_more_than_its_text() -> None:
    text = "a" * 400
    tracemalloc.start()
    try:
        kept = [encode_event({"type": "t", "sequence_number": number, "delta": text}) for number in range(EVENTS)]
        taken_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept) == EVENTS
    assert taken_bytes < EVENTS * MAX_BYTES_AN_EVENT
