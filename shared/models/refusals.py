"""From what pydantic objects to, to the one field that a caller must mend."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from shared.errors import InvalidRequest
from shared.models.values import Value

V = TypeVar("V", bound=Value)


def place_of(root: str, path: Sequence[str | int]) -> str:
    """Write a path as callers read it: `input[3].role`."""
    place = root
    for step in path:
        if isinstance(step, int):
            place += f"[{step}]"
        else:
            place += f".{step}" if place else step
    return place


def refusal_of(error: ValidationError, root: str = "") -> InvalidRequest:
    """Describe the first objection; a validator's own message may begin with the field: `tools: …`."""
    first = error.errors(include_url=False, include_input=False)[0]
    place, message = place_of(root, first["loc"]), first["msg"]
    if first["type"] == "value_error":
        field, colon, rest = str(first.get("ctx", {}).get("error", "")).partition(": ")
        if colon and field.isidentifier():
            place, message = place_of(place, [field]), rest
    return InvalidRequest(f"{place or 'body'}: {message}", param=place or None)


def read(kind: type[V], raw: Any, place: str) -> V:
    """Read one strictly typed object.

    Raises:
        InvalidRequest: `param` names the field below `place`.
    """
    if not isinstance(raw, Mapping):
        raise InvalidRequest(f"{place or 'body'}: must be an object", param=place or None)
    try:
        return kind.model_validate(raw, strict=True)
    except ValidationError as error:
        raise refusal_of(error, place) from error
