"""JSON and JSON lines: what is small is a paragraph of `path: value` lines, what is larger is under its path."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import cast

from backend.extraction.domain.blocks import Block, Heading, Paragraph
from backend.extraction.formats.text import decode, storable
from shared.errors import InvalidRequest
from shared.models.values import JsonObject, JsonValue

MAX_DEPTH = 100
RECORD_CHARACTERS = 1_200
"""An object or list of fewer characters stays together, as a record: so many make about one chunk."""


def read_json_document(body: bytes) -> Iterator[Block]:
    """Yield the values of a document, or of several that stand line by line.

    Raises:
        InvalidRequest: the text is no JSON, or nested too deeply.
    """
    text, notes = decode(body)
    try:
        value = _load(text)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise InvalidRequest(_complaint(error), param="body") from None
        yield from _lines_of(text)
    else:
        yield from _blocks(value, 1)
    yield from notes


def read_json_lines(body: bytes) -> Iterator[Block]:
    """Yield the value of each line (jsonlines.org).

    Raises:
        InvalidRequest: a line, which is named, is no JSON, or nested too deeply.
    """
    text, notes = decode(body)
    yield from _lines_of(text)
    yield from notes


def _lines_of(text: str) -> Iterator[Block]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                value = _load(line)
            except json.JSONDecodeError as error:
                raise InvalidRequest(f"Line {number}: {_complaint(error)}", param="body") from None
            yield from _element(value, f"[{number - 1}]", 1, is_headed=False)


def _load(text: str) -> JsonValue:
    """Parse JSON; numbers stay as they were written."""
    try:
        found = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except RecursionError:
        raise InvalidRequest(_TOO_DEEP, param="body") from None
    return cast(JsonValue, found)


_TOO_DEEP = f"The JSON is nested more than {MAX_DEPTH} levels deep."


def _complaint(error: json.JSONDecodeError) -> str:
    return f"The JSON is malformed at line {error.lineno}, column {error.colno}: {error.msg}."


def _blocks(value: JsonValue, level: int) -> Iterator[Block]:
    """Yield an object's small members as one paragraph and the others under their names; likewise those of a list."""
    if level > MAX_DEPTH:
        raise InvalidRequest(_TOO_DEEP, param="body")
    match value:
        case dict():
            yield from _members(value, level)
        case list():
            yield from _elements(value, level)
        case _:
            yield Paragraph(text=_scalar(value))


def _members(value: JsonObject, level: int) -> Iterator[Block]:
    large = list[tuple[str, JsonValue]]()
    small = list[str]()
    for name, member in value.items():
        lines = _record(member, storable(name))
        if lines is None:
            large.append((name, member))
        else:
            small.extend(lines)
    yield Paragraph(text="\n".join(small))
    for name, member in large:
        yield Heading(level=level, text=storable(name))
        yield from _blocks(member, level + 1)


def _elements(value: Sequence[JsonValue], level: int) -> Iterator[Block]:
    """Give every element a heading where one needs it: what follows a heading counts as under it."""
    is_headed = any(_record(element) is None for element in value)
    if not is_headed and not any(isinstance(element, dict | list) for element in value):
        yield from _texts(value)
        return
    for place, element in enumerate(value):
        yield from _element(element, f"[{place}]", level, is_headed=is_headed)


def _element(element: JsonValue, path: str, level: int, *, is_headed: bool) -> Iterator[Block]:
    lines = _record(element)
    if is_headed or lines is None:
        yield Heading(level=level, text=path)
    if lines is None:
        yield from _blocks(element, level + 1)
    else:
        yield Paragraph(text="\n".join(lines))


def _texts(values: Sequence[JsonValue]) -> Iterator[Block]:
    """Join short texts and numbers of a list to paragraphs of about a record's length."""
    line, length = list[str](), 0
    for text in map(_scalar, values):
        if length >= RECORD_CHARACTERS:
            yield Paragraph(text=", ".join(line))
            line, length = [], 0
        line.append(text)
        length += len(text)
    yield Paragraph(text=", ".join(line))


def _record(value: JsonValue, path: str = "") -> list[str] | None:
    """Return a small value as lines; None where it is an object or list of `RECORD_CHARACTERS` or more."""
    if not isinstance(value, dict | list):
        return [_line(path, value)]
    lines, length = list[str](), 0
    for line in islice(_lines(value, path, 0), RECORD_CHARACTERS):
        length += len(line) + 1
        lines.append(line)
        if length >= RECORD_CHARACTERS:
            return None
    return lines


def _lines(value: JsonValue, path: str, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        raise InvalidRequest(_TOO_DEEP, param="body")
    match value:
        case dict() if value:
            for name, member in value.items():
                name = storable(name)
                yield from _lines(member, f"{path}.{name}" if path else name, depth + 1)
        case list() if any(isinstance(element, dict | list) for element in value[:RECORD_CHARACTERS]):
            for place, element in enumerate(value):
                yield from _lines(element, f"{path}[{place}]", depth + 1)
        case list() if value:
            yield _line(path, ", ".join(_scalar(element) for element in value[:RECORD_CHARACTERS]))
        case _:
            yield _line(path, value)


def _line(path: str, value: JsonValue) -> str:
    text = _scalar(value)
    return f"{path}: {text}" if path else text


def _scalar(value: JsonValue) -> str:
    match value:
        case str():
            return storable(value)
        case bool() | None:
            return json.dumps(value)
        case dict() | list():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)
