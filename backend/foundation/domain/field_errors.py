"""From a failed validation to the one field that a caller has to change."""

from collections.abc import Sequence
from typing import Any, cast

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from backend.foundation.domain.large_numbers import refuse_large_numbers
from shared.errors import InvalidRequest, UnsupportedValue

NUL = "\x00"
MAX_DEPTH = 64
"""Levels of objects and lists in a body; orjson writes 254, and a schema needs far fewer."""

MESSAGES = {
    "extra_forbidden": "Unknown parameter.",
    "missing": "Missing required parameter.",
    "model_type": "Invalid value: input should be an object.",
    "none_required": "This parameter is not supported.",
}


def decode_object(raw: bytes) -> dict[str, Any]:
    """Decode a body that must be one JSON object; strings hold no NUL and no lone surrogate.

    PostgreSQL stores no NUL in a text.

    Raises:
        InvalidRequest: it is something else; `param` names the string with a NUL, the number beyond 64 bits, or
            what lies too deep.
    """
    refuse_large_numbers(raw)
    try:
        decoded: Any = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"The body is not valid JSON: {error}.") from None
    if not isinstance(decoded, dict):
        raise InvalidRequest("The body must be a JSON object.")
    body = cast("dict[str, Any]", decoded)
    if rb"\u0000" in raw or raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        _check_depth_and_text(body)
    return body


def field_error(error: ValidationError, given: Any) -> InvalidRequest:
    """Name the first wrong field of `given`, such as `input[2].content[0].image_url`."""
    first = min(error.errors(include_url=False, include_context=False), key=lambda e: len(e["loc"]) == 0)
    path = _path(first["loc"], given, is_missing=first["type"] == "missing")
    if first["type"].startswith("union_tag"):
        path = f"{path}.type" if path else "type"
        return UnsupportedValue("This type is not supported.", param=path)
    message = MESSAGES.get(first["type"]) or f"Invalid value: {_sentence(first)}"
    unsupported = first["type"] == "none_required"
    return (UnsupportedValue if unsupported else InvalidRequest)(message, param=path or None)


def _sentence(error: ErrorDetails) -> str:
    text = error["msg"].removeprefix("Value error, ")
    return text[:1].lower() + text[1:] + "."


def _path(location: Sequence[int | str], given: Any, *, is_missing: bool) -> str:
    """Keep of a location what indexes into the value: union tags and the like do not."""
    path = ""
    value = given
    for place, step in enumerate(location):
        if isinstance(step, int) and isinstance(value, list):
            items = cast("list[Any]", value)
            path, value = f"{path}[{step}]", items[step] if step < len(items) else None
        elif isinstance(step, str) and isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            if step in fields or (is_missing and place == len(location) - 1):
                path, value = f"{path}.{step}" if path else step, fields.get(step)
    return path


def _check_depth_and_text(body: dict[str, Any]) -> None:
    """Walk without recursion: a body may be deeper than Python's stack."""
    waiting: list[tuple[Any, str, int]] = [(body, "", 1)]
    while waiting:
        value, path, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise InvalidRequest("The body is nested too deeply.", param=path[:256])
        if isinstance(value, str):
            _refuse_nul(value, path)
        elif isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            for name in fields:
                _refuse_nul(name, path)
            waiting.extend((field, f"{path}.{name}" if path else name, depth + 1) for name, field in fields.items())
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            waiting.extend((item, f"{path}[{place}]", depth + 1) for place, item in enumerate(items))


def _refuse_nul(text: str, path: str) -> None:
    if NUL in text:
        raise InvalidRequest("Text must not contain the character U+0000.", param=path or None)
