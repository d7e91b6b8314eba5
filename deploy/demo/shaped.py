"""A small value that fits a JSON schema, for answers and arguments whose form a caller has asked for.

It knows types, required members, alternatives, constants, bounds and references inside the schema. It does not know
patterns and formats, and understands nothing: the words are those that it is given.
"""

from collections.abc import Mapping
from typing import Any, cast

Json = dict[str, Any]

_MAX_DEPTH = 12
_MAX_VALUES = 1000
_MAX_CHARACTERS, _MAX_ITEMS = 2000, 20


def fit(schema: Mapping[str, Any], words: str) -> Any:
    """Return a value for a schema in which every string is `words`; null where the schema leads nowhere."""
    return _Example(dict(schema), words).of(dict(schema), _MAX_DEPTH)


class _Example:
    """Builds a value, of at most so many parts: a schema may refer to itself without an end."""

    def __init__(self, root: Json, words: str):
        self._root, self._words, self._left = root, words, _MAX_VALUES

    def of(self, schema: Json, depth: int) -> Any:
        """Return a value for a part of the schema."""
        schema = self._choose(schema)
        self._left -= 1
        if depth == 0 or self._left < 0:
            return None
        fixed = [schema["const"]] if "const" in schema else _list(schema, "enum")
        if fixed:
            return fixed[0]
        kind = _type_of(schema)
        if kind == "object":
            properties = _object(schema.get("properties"))
            names = [name for name in _list(schema, "required") if isinstance(name, str)]
            return {name: self.of(_object(properties.get(name)), depth - 1) for name in names}
        if kind == "array":
            item = self.of(_object(schema.get("items")), depth - 1)
            return [item] * min(int(_number(schema, "minItems", 1)), _MAX_ITEMS)
        return _plain_value(kind, schema, self._words)

    def _choose(self, schema: Json) -> Json:
        """Follow references, and take the first alternative."""
        for _ in range(_MAX_DEPTH):
            alternatives = [each for name in ("anyOf", "oneOf", "allOf") for each in _list(schema, name)]
            if isinstance(reference := schema.get("$ref"), str):
                schema = self._follow(reference)
            elif alternatives:
                schema = _object(alternatives[0])
            else:
                break
        return schema

    def _follow(self, reference: str) -> Json:
        found = self._root
        for step in reference.removeprefix("#").split("/"):
            found = _object(found.get(step)) if step else found
        return found


def _plain_value(kind: str, schema: Json, words: str) -> Any:
    match kind:
        case "string":
            longest = int(_number(schema, "maxLength", _MAX_CHARACTERS))
            shortest = min(int(_number(schema, "minLength", 0)), _MAX_CHARACTERS)
            return words[: max(longest, 0)].ljust(shortest, ".")
        case "integer" | "number":
            lowest = _number(schema, "minimum", _number(schema, "exclusiveMinimum", 0) + 1)
            return min(lowest, _number(schema, "maximum", _number(schema, "exclusiveMaximum", lowest + 1) - 1))
        case "boolean":
            return True
        case _:
            return None


def _type_of(schema: Json) -> str:
    given: object = schema.get("type") or ("object" if "properties" in schema else "string")
    return str(cast("list[object]", given)[0] if isinstance(given, list) else given)


def _object(value: object) -> Json:
    return cast(Json, value) if isinstance(value, dict) else {}


def _list(schema: Json, name: str) -> list[Any]:
    found = schema.get(name)
    return cast("list[Any]", found) if isinstance(found, list) else []


def _number(schema: Json, name: str, default: float) -> float:
    found = schema.get(name)
    return found if isinstance(found, int | float) else default
