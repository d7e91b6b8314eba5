"""The JSON Schema of a tool's arguments, as far as it is taken over from a tool server.

All providers take an object with properties at the top, and references to its own definitions. A schema that is too
large, too deep, or refers to itself or to other documents is refused: the caller leaves its tool out.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

import orjson

from shared.models.canonical import sort_keys
from shared.models.values import JsonObject, JsonValue

MAX_SCHEMA_BYTES = 16_384
MAX_SCHEMA_DEPTH = 16
MAX_DESCRIPTION_CHARACTERS = 1_024
"""The limit of OpenAI's API for the description of a function."""

_TOP_KEYS = ("properties", "required", "additionalProperties", "$defs", "definitions")
"""What stays at the top beside `type`: providers refuse alternatives there, and need no titles."""

_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""The names of properties that Anthropic's API takes; OpenAI's takes these and others."""

_REFERENCE = re.compile(r"#/(\$defs|definitions)/([^/]+)")
_TEXT_CONTROLS = "\n\t"


class SchemaRefused(ValueError):
    """A schema that no model can be given; the message says why, without a word of the schema."""


def clean_text(text: str) -> str:
    """Return a text without control characters and invisible format characters, in which orders can be hidden."""
    kept = (each for each in text if each in _TEXT_CONTROLS or unicodedata.category(each)[0] != "C")
    return "".join(kept)


def clean_description(text: str | None) -> str | None:
    """Return a description that is fit to be shown, cut to its limit; None where nothing is left of it."""
    return clean_text(text or "").strip()[:MAX_DESCRIPTION_CHARACTERS].rstrip() or None


def clean_schema(schema: JsonValue) -> JsonObject:
    """Return a schema in its canonical form: an object at the top, keys sorted at each depth, texts cleaned.

    Raises:
        SchemaRefused: the schema is no object, is too large or too deep, or its references lead nowhere or in a circle.
    """
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise SchemaRefused("the schema of its arguments is no object")
    cleaned = _clean(schema, MAX_SCHEMA_DEPTH)
    top: JsonObject = {"type": "object", **{key: cleaned[key] for key in _TOP_KEYS if key in cleaned}}
    properties = _objects(top.setdefault("properties", {}))
    if not all(_PROPERTY.fullmatch(name) for name in properties):
        raise SchemaRefused("an argument has a name that models cannot write")
    if "required" in top:
        top["required"] = sorted(name for name in _strings(top["required"]) if name in properties)
    if not isinstance(top.get("additionalProperties", True), dict | bool):
        del top["additionalProperties"]
    _check_references(top)
    canonical = sort_keys(top)
    _check_size(canonical)
    return canonical


def _clean(value: JsonObject, depth_left: int) -> JsonObject:
    return {clean_text(name): _clean_value(each, depth_left - 1) for name, each in value.items()}


def _clean_value(value: JsonValue, depth_left: int) -> JsonValue:
    if depth_left <= 0:
        raise SchemaRefused("the schema of its arguments is too deep")
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return _clean(value, depth_left)
    if isinstance(value, list):
        return [_clean_value(each, depth_left - 1) for each in value]
    return value


def _objects(value: JsonValue) -> Mapping[str, JsonValue]:
    if not isinstance(value, dict) or not all(isinstance(each, dict | bool) for each in value.values()):
        raise SchemaRefused("the schema of its arguments is malformed")
    return value


def _strings(value: JsonValue) -> Sequence[str]:
    if not isinstance(value, list):
        raise SchemaRefused("the schema of its arguments is malformed")
    return [each for each in value if isinstance(each, str)]


def _check_size(schema: JsonObject) -> None:
    try:
        size_bytes = len(orjson.dumps(schema))
    except orjson.JSONEncodeError as error:
        raise SchemaRefused("the schema of its arguments holds a number that JSON cannot carry") from error
    if size_bytes > MAX_SCHEMA_BYTES:
        raise SchemaRefused("the schema of its arguments is too large")


def _check_references(top: JsonObject) -> None:
    """Check that references lead to definitions of this schema, and never back to where they stand."""
    defined = {
        (place, name): each for place in ("$defs", "definitions") for name, each in _objects(top.get(place, {})).items()
    }
    needs = {key: set(_references(each)) for key, each in defined.items()}
    wanted = set(_references({key: each for key, each in top.items() if key not in ("$defs", "definitions")}))
    if not wanted.union(*needs.values()) <= defined.keys():
        raise SchemaRefused("the schema of its arguments refers to what is not there")
    while needs:
        free = [key for key, inner in needs.items() if not inner & needs.keys()]
        if not free:
            raise SchemaRefused("the schema of its arguments refers to itself")
        for key in free:
            del needs[key]


def _references(value: JsonValue) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, each in value.items():
            if name in ("$ref", "$dynamicRef", "$recursiveRef"):
                found = _REFERENCE.fullmatch(each) if isinstance(each, str) else None
                yield (found[1], found[2]) if found else ("", "")
            else:
                yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)
