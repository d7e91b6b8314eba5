"""Decoding of JSON objects in requests, so that each value can be stored and is sent on unchanged."""

import json
from collections.abc import Iterator
from typing import cast

import orjson

from shared.errors import InvalidRequest
from shared.models.execution import JsonObject

MAX_DEPTH = 64
"""Levels of objects and lists in a body; orjson writes 254, and a schema needs far fewer."""

SMALLEST = -(2**63)
LARGEST = 2**64 - 1
"""Whole numbers that orjson keeps exactly. It reads a larger one as a near floating-point number, and writes none.

JSON sets no bound (RFC 8259, section 6), so a sender may mean such a number: it is refused rather than changed.
"""

_NUL = "\x00"
_LONGEST_DIGITS = len(str(LARGEST))
_RUN = b"0" * len(str(2**63))
_DIGITS_AS_ZEROS = bytes(ord("0") if chr(code).isdecimal() else ord(" ") for code in range(256))
_MAX_PATH = 256
_TOO_LARGE = object()
"""Takes the place of a number that is beyond 64 bits."""


def decode_object(raw: bytes) -> JsonObject:
    """Decode a body that must be one JSON object; strings hold no NUL and no lone surrogate.

    PostgreSQL stores no NUL in a text.

    Raises:
        InvalidRequest: it is something else; `param` names the string with a NUL, the number beyond 64 bits, or
            what lies too deep.
    """
    # Hardly any body has so many digits in a row: the rest is not read a second time.
    if _RUN in raw.translate(_DIGITS_AS_ZEROS):
        _refuse_large_numbers(raw)
    try:
        decoded: object = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"The body is not valid JSON: {error}.") from None
    if not isinstance(decoded, dict):
        raise InvalidRequest("The body must be a JSON object.")
    body = cast(JsonObject, decoded)
    if rb"\u0000" in raw or raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        _check_depth_and_text(body)
    return body


def _refuse_large_numbers(raw: bytes) -> None:
    """Refuse a whole number that would not arrive as it was sent; text that is not JSON is refused elsewhere."""
    try:
        decoded: object = json.loads(raw, parse_int=_whole_number)
    except (ValueError, RecursionError):
        return
    for value, path, _ in _values(decoded):
        if value is _TOO_LARGE:
            raise InvalidRequest("Whole numbers must fit into 64 bits.", param=path[:_MAX_PATH] or None)


def _whole_number(digits: str) -> object:
    if len(digits.removeprefix("-")) > _LONGEST_DIGITS:
        return _TOO_LARGE
    number = int(digits)
    return number if SMALLEST <= number <= LARGEST else _TOO_LARGE


def _check_depth_and_text(body: JsonObject) -> None:
    for value, path, depth in _values(body):
        if depth > MAX_DEPTH:
            raise InvalidRequest("The body is nested too deeply.", param=path[:_MAX_PATH])
        texts = cast("dict[str, object]", value) if isinstance(value, dict) else (value,)
        if any(isinstance(text, str) and _NUL in text for text in texts):
            raise InvalidRequest("Text must not contain the character U+0000.", param=path or None)


def _values(root: object) -> Iterator[tuple[object, str, int]]:
    """Yield each value in the order of the text, with its path and its depth, which begins with 1.

    It does not recurse: a body may be deeper than Python's stack.
    """
    waiting: list[tuple[object, str, int]] = [(root, "", 1)]
    while waiting:
        value, path, depth = waiting.pop()
        yield value, path, depth
        if isinstance(value, dict):
            fields = reversed(cast("dict[str, object]", value).items())
            waiting += [(field, f"{path}.{name}" if path else name, depth + 1) for name, field in fields]
        elif isinstance(value, list):
            items = reversed(list(enumerate(cast("list[object]", value))))
            waiting += [(item, f"{path}[{place}]", depth + 1) for place, item in items]
