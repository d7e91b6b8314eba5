"""Unknown members of a request that OpenAI's API may have added: named to the client, and otherwise ignored."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from shared.errors import InvalidRequest
from shared.models.invalid_fields import place_of
from shared.models.values import JsonObject, JsonValue

MAX_TEXT = 480
"""Characters of the names together: a value of metadata has at most 512."""

MAX_NAME = 80
_SEPARATOR = ", "
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

    def __init__(self, named: str = "") -> None:
        self._found: dict[int, tuple[object, tuple[str, ...]]] = {}
        self._names = named.split(_SEPARATOR) if named else []
        self._count = len(self._names)

    def members(self, given: object, names: tuple[str, ...]) -> None:
        """Note members of an object; without names, the object as a whole."""
        self._found[id(given)] = (given, names)

    def name(self, given: JsonValue, root: str = "") -> None:
        """Find where in a validated value the objects stand in which something was noted since the last call."""
        if not self._found:
            return
        for path, names in _places(given, self._found, ()):
            for steps in [(*path, name) for name in names] or [path]:
                self.leave_out(place_of(root, steps))
        self._found.clear()

    def leave_out(self, place: str) -> None:
        """Note by its place what turns out to be of no use after the validation; each place counts once."""
        name = _NOT_IN_HEADERS.sub("?", place)[:MAX_NAME]
        if name in self._names:
            return
        self._count += 1
        if len(self._names) < MAX_TEXT:
            self._names.append(name)

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    @property
    def text(self) -> str:
        """The names, separated by commas, and how many more there are than fit; "" where nothing is passed over."""
        shown = list(self._names)
        while (more := self._count - len(shown)) >= 0:
            text = _SEPARATOR.join([*shown, f"and {more} more"] if more else shown)
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


def _leave_out_choice(given: object, validated: ValidatorFunctionWrapHandler, validation: ValidationInfo) -> Any:
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


OR_LEFT_OUT = WrapValidator(_leave_out_choice)
"""Lets a choice of a tool be passed over whose type is that of one among `tools` that is passed over."""


def name_passed_over(metadata: Mapping[str, str] | None, passed_over: PassedOver | None) -> Mapping[str, str] | None:
    """Return metadata that name what was passed over, where they have room for that."""
    given = metadata or {}
    if passed_over is None or not passed_over.text or (len(given) >= MAX_PAIRS and IGNORED_KEY not in given):
        return metadata
    return {**given, IGNORED_KEY: passed_over.text}


class NotingRequest(BaseModel):
    """A request that is known to what collects what is passed over of it; copies share that.

    Without a collector nothing is passed over.
    """

    metadata: dict[str, str] | None = None
    _passed_over: PassedOver | None = PrivateAttr(default=None)

    def with_collector(self, passed_over: PassedOver | None) -> Self:
        """Let a collector have what is passed over of this request and of its later copies.

        Return the request with what the collector holds so far named in the metadata.
        """
        self._passed_over = passed_over
        return self.with_collected()

    def with_collected(self) -> Self:
        """Return the request with what its collector holds so far named in the metadata."""
        named = name_passed_over(self.metadata, self._passed_over)
        return self if named is self.metadata else self.model_copy(update={"metadata": named})

    def with_named(self, places: Sequence[str]) -> Self:
        """Return the request with these places named as passed over.

        Raises:
            InvalidRequest: nothing is passed over; `param` is the first of them.
        """
        if not places:
            return self
        if self._passed_over is None:
            message = f"{places[0]}: neither this server nor the model has this field; leave it out."
            raise InvalidRequest(message, param=places[0])
        for place in places:
            self._passed_over.leave_out(place)
        return self.with_collected()


def _places(
    here: JsonValue, found: dict[int, tuple[object, tuple[str, ...]]], path: tuple[Step, ...]
) -> Iterator[tuple[tuple[Step, ...], tuple[str, ...]]]:
    if not isinstance(here, dict | list):
        return
    if id(here) in found:
        yield path, found[id(here)][1]
    for step, value in here.items() if isinstance(here, dict) else enumerate(here):
        yield from _places(value, found, (*path, step))
