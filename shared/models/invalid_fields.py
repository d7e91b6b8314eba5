"""Convert the errors that pydantic finds to one error of ours, which names the field that the caller must change."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeVar, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from shared.errors import InvalidRequest, UnsupportedValue
from shared.models.values import Value

V = TypeVar("V", bound=Value)

_NOT_AN_OBJECT = "{field}: must be an object."
_MAX_SHOWN = 64
"""Characters of a wrong value that a message repeats."""

_SENTENCES = {
    "missing": "{field}: this field is required; add it.",
    "extra_forbidden": "{field}: there is no such field here; leave it out.",
    "model_type": _NOT_AN_OBJECT,
    "model_attributes_type": _NOT_AN_OBJECT,
    "dict_type": _NOT_AN_OBJECT,
    "none_required": "{field}: this field is not supported; leave it out.",
    "union_tag_not_found": "{field}: this field is required; give the type of the object as a string.",
}
_PLAIN = {
    "too_short": "has too few elements; use at least {min_length}",
    "too_long": "has too many elements; use at most {max_length}",
    "string_too_short": "has too few characters; use at least {min_length}",
    "string_too_long": "has too many characters; use at most {max_length}",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "string_type": "must be a string",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "has too many digits; it must fit into 64 bits",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
}
"""What is wrong, for types of errors whose own messages speak of pydantic's steps; a bound is in their context."""

_UNION_TAGS = ("union_tag_invalid", "union_tag_not_found")
_UNSUPPORTED = (*_UNION_TAGS, "none_required")


class Complaint(NamedTuple):
    """One error that pydantic has found: the type of the error, its location and its message."""

    kind: str
    location: tuple[int | str, ...]
    message: str
    context: Mapping[str, object] = MappingProxyType({})

    @classmethod
    def of(cls, details: ErrorDetails) -> "Complaint":
        """Return what pydantic's details of an error say."""
        return cls(details["type"], details["loc"], details["msg"], details.get("ctx", {}))


def place_of(root: str, path: Sequence[str | int]) -> str:
    """Return a path below `root` in the form that callers read, such as `input[3].role`."""
    place = root
    for step in path:
        if isinstance(step, int):
            place += f"[{step}]"
        else:
            place += f".{step}" if place else step
    return place


def refusal_of(
    error: ValidationError,
    root: str = "",
    given: object = None,
    *,
    whole: str = "body",
    tells_unsupported: bool = False,
) -> InvalidRequest:
    """Return the error for the first complaint about a field, or about the whole value where there is no other.

    `root`, `given` and `whole` are those of `refusal_among`. With `tells_unsupported`, a type or a field that OpenAI
    has and we have not gives an `UnsupportedValue`.
    """
    found = error.errors(include_url=False, include_input=False)
    first = next((each for each in found if each["loc"]), found[0])
    complaint = Complaint.of(first)
    refusal = refusal_among([complaint], root, given, whole=whole)
    if tells_unsupported and complaint.kind in _UNSUPPORTED:
        return UnsupportedValue(refusal.message, param=refusal.param)
    return refusal


def refusal_among(
    complaints: Sequence[Complaint], root: str = "", given: object = None, *, whole: str = "body"
) -> InvalidRequest:
    """Return the error for the complaint with the longest path, the first of several with paths of equal length.

    For a union pydantic reports a complaint for each member; the member that the caller meant is taken to be the one
    with the longest path. `root` is the path of the value, `whole` what it is called where that is empty. `given` is
    the JSON value as it was received: it serves to distinguish the keys in pydantic's locations from the tags of
    unions; where it is None, all of a location are keys.
    The message of one of our own validators may begin with the name of a field, such as `tools: …`.
    """
    paths = [_path(complaint, given) for complaint in complaints]
    complaint, path = max(zip(complaints, paths, strict=True), key=lambda found: len(found[1]))
    kind, message = complaint.kind, plain_words(complaint)
    field, colon, rest = message.partition(": ")
    if kind == "value_error" and colon and field.isidentifier():
        path, message = [*path, field], rest
    if kind in _UNION_TAGS:
        path = [*path, "type"]
    param = place_of(root, path)
    sentence = _SENTENCES.get(kind, "{field}: {what}.")
    text = sentence.format(field=param or whole, what=message[:1].lower() + message[1:])
    return InvalidRequest(text, param=param or None)


def read(kind: type[V], raw: object, place: str) -> V:
    """Validate one object in pydantic's strict mode.

    Raises:
        InvalidRequest: the object is not valid; `param` names the field, starting with `place`.
    """
    if not isinstance(raw, Mapping):
        raise InvalidRequest(_NOT_AN_OBJECT.format(field=place or "body"), param=place or None)
    try:
        return kind.model_validate(raw, strict=True)
    except ValidationError as error:
        raise refusal_of(error, place) from error


def plain_words(complaint: Complaint) -> str:
    """Say what is wrong with a value, as words that follow its name."""
    if complaint.kind in _PLAIN:
        return _PLAIN[complaint.kind].format(**complaint.context)
    if complaint.kind == "union_tag_invalid":
        return _other_type(complaint.context)
    said = complaint.message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return said.replace("Input should be ", "must be ", 1)


def _other_type(context: Mapping[str, object]) -> str:
    """Say which types there are, by the tags of a union's members: their last word, as in `'user's message'`.

    A tag in parentheses belongs to a member that has no type.
    """
    tags = re.findall(r"'([^,]*)'(?:,|$)", str(context.get("expected_tags", "")))
    types = dict.fromkeys(tag.rpartition(" ")[2] for tag in tags if not tag.startswith("("))
    shown = str(context.get("tag", "")).rpartition(" ")[2][:_MAX_SHOWN]
    return f"'{shown}' is not supported; use {', '.join(types)}"


def _path(complaint: Complaint, given: object) -> Sequence[str | int]:
    """Return the steps of a location that are keys or indexes of the value, or the name of a missing field."""
    steps = complaint.location
    if given is None:
        return steps
    path: list[str | int] = []
    here: object = given
    for place, step in enumerate(steps):
        if isinstance(here, dict) and _is_tag(cast("dict[int | str, object]", here), steps[place:], complaint.kind):
            continue
        if isinstance(here, dict) and step in here:
            here = cast("dict[int | str, object]", here)[step]
        elif isinstance(here, list) and isinstance(step, int) and step < len(cast("list[object]", here)):
            here = cast("list[object]", here)[step]
        elif not (complaint.kind == "missing" and step == steps[-1]):
            continue
        path.append(step)
    return path


def _is_tag(fields: Mapping[int | str, object], steps: Sequence[str | int], kind: str) -> bool:
    """Whether the first step, though a key, is the value of `type` by which a member of a union was chosen.

    Of two steps whose last is missing the first may be either; it is the key where the last is missing below it.
    """
    if len(steps) == 1:
        return False
    below = fields.get(steps[0])
    is_missing_below = isinstance(below, dict) and steps[1] not in below
    is_last_and_missing = kind == "missing" and len(steps) == 2 and not is_missing_below
    return fields.get("type") == steps[0] and (steps[1] in fields or is_last_and_missing)
