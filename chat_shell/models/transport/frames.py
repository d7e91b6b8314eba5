"""Parse and check the JSON frames of a provider's stream."""

import orjson

from shared.errors import ModelProtocolViolated
from shared.models.values import JsonObject, JsonValue

_UNKNOWN_SHAPE = "the model's provider sent a frame of an unknown shape"


def parse_frame(payload: bytes) -> JsonObject:
    """Parse a frame that must be a JSON object, or raise ModelProtocolViolated."""
    try:
        return expect_object(orjson.loads(payload))
    except orjson.JSONDecodeError as error:
        raise ModelProtocolViolated("the model's provider sent a frame that is not JSON") from error


def expect_object(value: JsonValue) -> JsonObject:
    """Return a value that must be a JSON object, or raise ModelProtocolViolated."""
    if isinstance(value, dict):
        return value
    raise ModelProtocolViolated(_UNKNOWN_SHAPE)


def expect_array(value: JsonValue) -> list[JsonValue]:
    """Return a value that must be a JSON array, or raise ModelProtocolViolated."""
    if isinstance(value, list):
        return value
    raise ModelProtocolViolated(_UNKNOWN_SHAPE)
