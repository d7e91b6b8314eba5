"""Events of a response as clients get them."""

from collections.abc import Mapping

import orjson

from shared.models.values import JsonValue, Value


class LoggedEvent(Value):
    """An event as clients get it: its number and its JSON text, ready for the wire."""

    sequence_number: int
    type: str
    body: bytes


def encode_event(event: Mapping[str, JsonValue]) -> LoggedEvent:
    """Encode an event that carries its `type` and `sequence_number`."""
    # orjson hands out its whole buffer, some kilobytes for an event of some hundred bytes; the copy has its size.
    body = bytes(memoryview(orjson.dumps(event)))
    return LoggedEvent.model_validate(
        {"sequence_number": event["sequence_number"], "type": event["type"], "body": body}
    )
