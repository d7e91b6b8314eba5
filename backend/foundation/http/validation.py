"""From pydantic's list of errors to the one sentence that tells a caller what to mend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

MISSING_TYPE = "missing"
UNKNOWN_TAG_TYPE = "union_tag"


@dataclass(frozen=True)
class InvalidField:
    """A wrong field: its path as a caller writes it, such as `input[2].content`, and what is wrong."""

    param: str | None
    message: str


def most_telling(errors: Sequence[Mapping[str, Any]], body: object) -> InvalidField:
    """Choose among the errors the one that lies deepest in the body; the first of several.

    A union reports an error for each of its members; the member that was meant is the one that got
    furthest. `body` is the JSON value as it came, by which the tags of unions in pydantic's locations are
    told from keys.
    """
    paths = [_path(error, body) for error in errors]
    deepest = max(range(len(errors)), key=lambda place: (len(paths[place]), -place))
    error, path = errors[deepest], paths[deepest]
    if str(error["type"]).startswith(UNKNOWN_TAG_TYPE):
        return InvalidField(render_path([*path, "type"]), "This type is not supported here.")
    param = render_path(path) or None
    what = str(error["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if error["type"] == MISSING_TYPE:
        return InvalidField(param, f"Missing required field '{param or 'body'}'.")
    if error["type"] == "extra_forbidden":
        return InvalidField(param, f"Unknown field '{param}'.")
    return InvalidField(param, f"Invalid value for '{param or 'body'}': {what}.")


def render_path(path: Sequence[str | int]) -> str:
    """Write a path as a caller would: `input[2].content`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def _path(error: Mapping[str, Any], body: object) -> list[str | int]:
    place, *steps = cast(Sequence[str | int], error["loc"]) or ("body",)
    if place != "body":
        return steps[:1]  # what follows is of the value: a place among equal names, a member of a union
    path: list[str | int] = []
    here = body
    for step in steps:
        if isinstance(here, dict) and step in here:
            here = cast(dict[object, object], here)[step]
        elif isinstance(here, list) and isinstance(step, int) and step < len(cast(list[object], here)):
            here = cast(list[object], here)[step]
        elif not (error["type"] == MISSING_TYPE and step == steps[-1]):
            continue
        path.append(step)
    return path
