"""Events of a response as clients get them."""

from typing import Any

import orjson

from shared.models.values import Value


class LoggedEvent(Value):
    """An event as clients get it: its number and its JSON text, ready for the wire."""

    sequence_number: int
    type: str
    body: bytes


def encode_event(event: dict[str, Any]) -> LoggedEvent:
    """Encode an event that carries its `type` and `sequence_number`."""
    return LoggedEvent(sequence_number=event["sequence_number"], type=event["type"], body=orjson.dumps(event))
