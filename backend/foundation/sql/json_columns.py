"""JSON in columns of text, so that what was stored is what is read, byte for byte."""

import orjson

from shared.errors import InvalidRequest


def to_json(value: object) -> str:
    """Write JSON text, keys in their order.

    Raises:
        InvalidRequest: half a character (a lone surrogate), or a number beyond 64 bits.
    """
    return json_text(value, 0)


def json_text(value: object, options: int) -> str:
    """Write JSON text with options of orjson; raises as `to_json` does."""
    try:
        return orjson.dumps(value, option=options).decode()
    except orjson.JSONEncodeError as error:
        raise InvalidRequest("A text or a number in the request cannot be written as JSON.") from error
