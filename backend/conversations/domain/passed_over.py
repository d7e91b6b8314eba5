"""What of a request is passed over where OpenAI's API may have grown: named to the client, and otherwise ignored."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator

from shared.models.invalid_fields import place_of
from shared.models.values import JsonObject, JsonValue

MAX_TEXT = 480
"""Characters of the names together: a value of metadata has at most 512."""

MAX_NAME = 80
MAX_PAIRS = 16
"""How many pairs metadata have at most."""

IGNORED_KEY = "ballast_ignored"
"""The key of a response's metadata that names what of its request was passed over."""

_NOT_IN_HEADERS = re.compile(r"[^!-+\--~]")
Step = str | int


class OtherKind(BaseModel):
    """Stands in the place of a tool or an item of a type that is not known here, so that others keep their numbers."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)
    type: str


class PassedOver:
    """Collects what is passed over while a request is validated, whose context it is; without one nothing is."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[object, tuple[str, ...]]] = {}
        self._names: list[str] = []
        self._count = 0

    def members(self, given: object, names: tuple[str, ...]) -> None:
        """Note members of an object; without names, the object as a whole."""
        self._found[id(given)] = (given, names)

    def name(self, given: JsonValue, root: str = "") -> None:
        """Find where in a validated value the objects stand in which something was noted since the last call."""
        if not self._found:
            return
        for path, names in _places(given, self._found, ()):
            for steps in [(*path, name) for name in names] or [path]:
                self._count += 1
                if len(self._names) < MAX_TEXT:
                    self._names.append(_NOT_IN_HEADERS.sub("?", place_of(root, steps))[:MAX_NAME])
        self._found.clear()

    @property
    def text(self) -> str:
        """The names, separated by commas, and how many more there are than fit; "" where nothing is passed over."""
        shown = list(self._names)
        while (more := self._count - len(shown)) >= 0:
            text = ", ".join([*shown, f"and {more} more"] if more else shown)
            if len(text) <= MAX_TEXT:
                return text
            shown.pop()
        return ""


def passes_over(validation: ValidationInfo) -> PassedOver | None:
    """Return what notes what is passed over in a validation; None where everything unknown is refused."""
    return validation.context if isinstance(validation.context, PassedOver) else None


def _other_kind(given: object, validated: ValidatorFunctionWrapHandler, validation: ValidationInfo) -> Any:
    try:
        return validated(given)
    except ValidationError as error:
        noted = passes_over(validation)
        if noted is None or not _is_unknown_type(error, given):
            raise
        noted.members(given, ())
        return OtherKind.model_validate(given)


def _is_unknown_type(error: ValidationError, given: object) -> bool:
    """Return whether all that is wrong with an object is that its type is another one."""
    found = error.errors(include_url=False, include_input=False, include_context=False)[0]
    has_type = isinstance(given, dict) and isinstance(cast(JsonObject, given).get("type"), str)
    return has_type and found["type"] == "union_tag_invalid" and not found["loc"]


OR_OTHER_KIND = WrapValidator(_other_kind)
"""Lets an object of a type that a union does not know be passed over."""


def _left_out_choice(given: object, validated: ValidatorFunctionWrapHandler, validation: ValidationInfo) -> Any:
    """Let the model choose where the tool that must be called is one that is passed over."""
    try:
        return validated(given)
    except ValidationError as error:
        noted = passes_over(validation)
        if noted is None or not _is_unknown_type(error, given):
            raise
        tools: Sequence[object] = validation.data.get("tools") or ()
        wanted = cast(JsonObject, given)["type"]
        if not any(isinstance(tool, OtherKind) and tool.type == wanted for tool in tools):
            raise
        noted.members(given, ())
        return None


OR_LEFT_OUT = WrapValidator(_left_out_choice)
"""Lets a choice of a tool be passed over whose type is that of one among `tools` that is passed over."""


def named_in(metadata: Mapping[str, str] | None, passed_over: PassedOver | None) -> Mapping[str, str] | None:
    """Return metadata that name what was passed over, where they have room for that."""
    given = metadata or {}
    if passed_over is None or not passed_over.text or (len(given) >= MAX_PAIRS and IGNORED_KEY not in given):
        return metadata
    return {**given, IGNORED_KEY: passed_over.text}


def _places(
    here: JsonValue, found: dict[int, tuple[object, tuple[str, ...]]], path: tuple[Step, ...]
) -> Iterator[tuple[tuple[Step, ...], tuple[str, ...]]]:
    if not isinstance(here, dict | list):
        return
    if id(here) in found:
        yield path, found[id(here)][1]
    for step, value in here.items() if isinstance(here, dict) else enumerate(here):
        yield from _places(value, found, (*path, step))
