"""Decoding of JSON objects in requests, so that each value can be stored and is sent on unchanged."""

import json
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeVar, cast

import orjson
from pydantic import BeforeValidator
from pydantic_core import PydanticKnownError

from shared.errors import InvalidRequest
from shared.models.execution import JsonObject
from shared.models.json_bounds import (
    LARGEST_WHOLE_NUMBER,
    SMALLEST_WHOLE_NUMBER,
    JsonBounds,
    JsonScanner,
    Span,
)

REQUEST_BOUNDS = JsonBounds()
"""The bounds of every JSON body: the longest step of reading one, validation included, takes less than 50 ms."""

MAX_DEPTH = 64
"""Levels of objects and lists in a body; orjson writes 254, and a schema needs far fewer."""

MAX_MEMBERS = 1024
"""Members of one object: a validator reports each unknown one."""

STEP_BYTES = 2**21
"""Text that is decoded in one step: about 3 ms."""

MAX_MEMBER_CHARACTERS = 64
_NUL = "\x00"
_NUL_MESSAGE = "Text must not contain the character U+0000."
_LONGEST_DIGITS = len(str(LARGEST_WHOLE_NUMBER))
_MAX_PATH = 256
_TOO_LARGE = object()
"""Takes the place of a number that is beyond 64 bits."""

Result = TypeVar("Result")


class Pause(Enum):
    """What comes behind a pause between two steps, where that is not short."""

    BEFORE_LONG = auto()


Steps = Generator[Pause | None, None, Result]
"""Work in short steps, so that who drives it can let others run between two of them.

What goes over megabytes in one call is no short step: it stands behind `Pause.BEFORE_LONG`.
"""


@dataclass(frozen=True)
class JsonText:
    """A body within its bounds, and what the scan found in it."""

    raw: bytes | bytearray
    scan: JsonScanner


def scan_json(raw: bytes) -> JsonText:
    """Scan a whole body.

    Raises:
        InvalidRequest: a bound is exceeded.
    """
    scan = JsonScanner(REQUEST_BOUNDS)
    scan.feed(raw)
    scan.end()
    return JsonText(raw, scan)


def result_of(steps: Steps[Result]) -> Result:
    """Run all steps at once."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return cast(Result, end.value)


def decode_cooperatively(text: JsonText) -> Steps[JsonObject]:
    """Decode a body that must be one JSON object; strings hold no NUL and no lone surrogate.

    PostgreSQL stores no NUL in a text.

    Raises:
        InvalidRequest: it is something else; `param` names the string with a NUL, the number beyond 64 bits, what
            lies too deep, or the object with too many members. Of two members of one name none would count for sure.
    """
    small, spans = text.raw, list[Span]()
    if len(text.raw) > STEP_BYTES:
        if text.scan.has_nul:  # which would be mistaken for what takes the place of a long string
            raise InvalidRequest(_NUL_MESSAGE)
        small, spans = _without_long_strings(text), text.scan.long_strings
        yield
    if text.scan.has_large_number:
        _refuse_large_numbers(small)
    decoded = _load(small)
    if not isinstance(decoded, dict):
        raise InvalidRequest("The body must be a JSON object.")
    body = cast(JsonObject, decoded)
    if text.scan.has_nul or text.scan.deepest > MAX_DEPTH:
        _refuse_nul_and_depth(body)
    _check_members(text, small, [len(each) for each in _objects(body)], body)
    if spans:
        yield
        yield from _put_back(body, text.raw, spans)
    return body


def _load(raw: bytes | bytearray | memoryview) -> object:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"The body is not valid JSON: {error}.") from None


def _without_long_strings(text: JsonText) -> bytes:
    r"""Replace each long string by U+0000 and its number, which no string of a body may hold."""
    pieces: list[bytes | memoryview] = []
    view, place = memoryview(text.raw), 0
    for number, span in enumerate(text.scan.long_strings):
        pieces += (view[place : span.start], rb"\u0000%d" % number)
        place = span.end
    return b"".join([*pieces, view[place:]])


def _put_back(body: JsonObject, raw: bytes | bytearray, spans: list[Span]) -> Steps[None]:
    decoded_bytes = 0
    for holder, key, number in list(_places_of_long_strings(body)):
        holder[key] = yield from _decode_string(raw, spans[number])
        decoded_bytes += spans[number].end - spans[number].start
        if decoded_bytes > STEP_BYTES:
            decoded_bytes = 0
            yield


def _decode_string(raw: bytes | bytearray, span: Span) -> Steps[object]:
    start, end = span
    if end - start <= STEP_BYTES or raw.find(b"\\", start, end) >= 0:
        if end - start > REQUEST_BOUNDS.string_bytes:
            raise InvalidRequest(f"A string of more than {REQUEST_BOUNDS.string_bytes} bytes must not hold escapes.")
        # The quotes around a string belong to its text.
        return _load(memoryview(raw)[start - 1 : end + 1])
    pieces: list[str] = []
    while start < end:
        cut = _character_start(raw, start, min(start + STEP_BYTES, end))
        pieces.append(cast(str, _load(b'"%b"' % memoryview(raw)[start:cut])))
        start = cut
        yield
    return "".join(pieces)


def _character_start(raw: bytes | bytearray, start: int, end: int) -> int:
    """Return the last place up to `end`, but behind `start`, where a character of UTF-8 begins, or the string ends."""
    behind = (place for place in range(end, max(start, end - 4), -1) if raw[place] & 0xC0 != 0x80)
    return next(behind, end)


def _places_of_long_strings(body: JsonObject) -> Iterator[tuple[dict[object, object], object, int]]:
    for holder in _containers(body):
        # A list is treated like an object whose keys are its indexes.
        members = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, value in members:
            if isinstance(value, str) and value.startswith(_NUL):
                yield cast("dict[object, object]", holder), key, int(value[1:])


def _objects(body: JsonObject) -> Iterator[dict[object, object]]:
    return (each for each in _containers(body) if isinstance(each, dict))


def _containers(body: JsonObject) -> Iterator[dict[object, object] | list[object]]:
    waiting = [cast("dict[object, object] | list[object]", body)]
    while waiting:
        holder = waiting.pop()
        yield holder
        values = holder.values() if isinstance(holder, dict) else holder
        waiting += [
            cast("dict[object, object] | list[object]", value) for value in values if isinstance(value, dict | list)
        ]


def _check_members(text: JsonText, small: bytes | bytearray, counts: list[int], body: JsonObject) -> None:
    if text.scan.values > MAX_MEMBERS and max(counts) > MAX_MEMBERS:
        _refuse_large_objects(body)
    if sum(counts) != text.scan.members:  # of two members of one name the parser keeps the last
        json.loads(small, object_pairs_hook=_refuse_repeated, parse_int=_whole_number)


def _refuse_repeated(members: list[tuple[str, object]]) -> None:
    """Raise an error that names the member; JSON leaves open which of the two counts (RFC 8259, section 4)."""
    for name, times in Counter(name for name, _ in members).items():
        if times > 1:
            raise InvalidRequest(f"The member {name[:MAX_MEMBER_CHARACTERS]!r} stands twice in one object.")


def _refuse_large_objects(body: JsonObject) -> None:
    for value, path, _ in _values(body):
        if isinstance(value, dict) and len(cast(JsonObject, value)) > MAX_MEMBERS:
            raise InvalidRequest(f"An object must have at most {MAX_MEMBERS} members.", param=path or None)


def _refuse_large_numbers(raw: bytes | bytearray) -> None:
    """Refuse a whole number that would not arrive as it was sent; text that is not JSON is refused elsewhere."""
    try:
        decoded: object = json.loads(raw, parse_int=_whole_number)
    except (ValueError, RecursionError):
        return
    for value, path, _ in _values(decoded):
        if value is _TOO_LARGE:
            raise InvalidRequest("Whole numbers must fit into 64 bits.", param=path or None)


def _whole_number(digits: str) -> object:
    if len(digits.removeprefix("-")) > _LONGEST_DIGITS:
        return _TOO_LARGE
    number = int(digits)
    return number if SMALLEST_WHOLE_NUMBER <= number <= LARGEST_WHOLE_NUMBER else _TOO_LARGE


def _refuse_nul_and_depth(body: object) -> None:
    for value, path, depth in _values(body):
        if depth > MAX_DEPTH:
            raise InvalidRequest(f"The body is nested too deeply; it must have at most {MAX_DEPTH} levels.", param=path)
        texts = cast("dict[str, object]", value) if isinstance(value, dict) else (value,)
        if any(isinstance(text, str) and _NUL in text for text in texts):
            raise InvalidRequest(_NUL_MESSAGE, param=path or None)


def _values(root: object) -> Iterator[tuple[object, str, int]]:
    """Yield each value in the order of the text, with its path, cut after 256 characters, and its depth from 1 on."""
    waiting: list[tuple[object, str, int]] = [(root, "", 1)]
    while waiting:
        value, path, depth = waiting.pop()
        yield value, path, depth
        if isinstance(value, dict):
            fields = reversed(cast("dict[str, object]", value).items())
            waiting += [(field, (f"{path}.{name}" if path else name)[:_MAX_PATH], depth + 1) for name, field in fields]
        elif isinstance(value, list):
            items = reversed(list(enumerate(cast("list[object]", value))))
            waiting += [(item, f"{path}[{place}]"[:_MAX_PATH], depth + 1) for place, item in items]


def at_most(members: int) -> BeforeValidator:
    """Return the validator of a JSON object that has no more than so many members."""

    def check(given: object) -> object:
        count = len(cast(dict[str, object], given)) if isinstance(given, dict) else 0
        if count > members:
            context = {"field_type": "Dictionary", "max_length": members, "actual_length": count}
            raise PydanticKnownError("too_long", context)
        return cast(object, given)

    return BeforeValidator(check)
