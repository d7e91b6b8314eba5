"""The words of the API reference: what the OpenAPI document says of fields, parameters and answers, with examples.

They stand in a `reference.toml` beside the routes of each package and not in the code, because nothing but the document
needs them, which is built when somebody first reads it. Tests hold that no field lacks a description, that each entry
is used, and that all examples fit.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from shared.models.values import JsonObject, JsonValue

FILE_NAME = "reference.toml"
EVERYWHERE = "everywhere"
"""The section of fields that mean the same in every object."""

PARAMETERS = "parameters"
OPERATIONS = "operations"
_SCHEMA_REFERENCE = "#/components/schemas/"
_GENERATED_DESCRIPTIONS = frozenset({"Successful Response", "Created", "Validation Error"})
_DEEPEST_EXAMPLE = 8
_PLAIN_EXAMPLES: Mapping[JsonValue, JsonValue] = {"null": None, "boolean": False, "integer": 0, "number": 0.0}


class FieldWords(NamedTuple):
    """What is said of a field or a parameter, and an example of it, if it has one."""

    description: str
    examples: tuple[JsonValue, ...] = ()


class OperationWords(NamedTuple):
    """What an operation answers, and examples of its bodies where those of their fields do not suffice."""

    answer: str | None = None
    request_example: JsonValue = None
    answer_example: JsonValue = None


class Reference(NamedTuple):
    """The words of all packages: of fields by object and name, parameters by name, operations by method and path."""

    fields: Mapping[str, Mapping[str, FieldWords]]
    parameters: Mapping[str, FieldWords]
    operations: Mapping[str, OperationWords]

    def of_field(self, owner: str, name: str) -> FieldWords | None:
        """Return what is said of a field of an object; the words for everywhere count where it has none of its own."""
        own = self.fields.get(owner, {}).get(name)
        return own if own is not None else self.fields.get(EVERYWHERE, {}).get(name)


def read_reference(paths: Iterable[Path]) -> Reference:
    """Read the words of several packages.

    Raises:
        ValueError: two files say something of the same.
    """
    said: dict[str, dict[str, object]] = {}
    for path in paths:
        for section, entries in tomllib.loads(path.read_text(encoding="utf-8")).items():
            known = said.setdefault(section, {})
            if twice := known.keys() & entries.keys():
                raise ValueError(f"{path}: another file has these of {section} too: {', '.join(sorted(twice))}")
            known.update(entries)
    operations = cast("dict[str, dict[str, Any]]", said.pop(OPERATIONS, {}))
    parameters = _words(said.pop(PARAMETERS, {}))
    of_operations = {address: OperationWords(**words) for address, words in operations.items()}
    return Reference({owner: _words(entries) for owner, entries in said.items()}, parameters, of_operations)


def describe_operations(document: JsonObject, reference: Reference) -> JsonObject:
    """Add the words of a reference to an OpenAPI document, in place, and return it.

    Raises:
        ValueError: the code says of a field or a parameter what it is, and the reference does, too.
    """
    for schema in objects_with_fields(document):
        owner = str(schema.get("title", ""))
        for name, field in fields_of(schema).items():
            words = reference.of_field(owner, name)
            if words is not None:
                _say(field, words.description, f"{owner}.{name}")
                if words.examples:
                    field.setdefault("examples", list(words.examples))
    for address, operation in operations_in(document):
        _describe(operation, reference.operations.get(address, OperationWords()), reference, document)
    return document


def operations_in(document: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield each operation with its method and path, such as `GET /v1/models`."""
    for path, methods in _object(document["paths"]).items():
        for method, operation in _object(methods).items():
            yield f"{method.upper()} {path}", _object(operation)


def objects_with_fields(value: object) -> Iterator[JsonObject]:
    """Yield each schema of an object anywhere in a document."""
    if isinstance(value, list):
        for each in cast("list[object]", value):
            yield from objects_with_fields(each)
    elif isinstance(value, dict):
        schema = cast(JsonObject, value)
        if isinstance(schema.get("properties"), dict) and isinstance(schema.get("title"), str):
            yield schema
        for name, each in schema.items():
            if name not in ("example", "examples"):
                yield from objects_with_fields(each)


def fields_of(schema: JsonObject) -> dict[str, JsonObject]:
    """Return the schemas of the fields of an object."""
    return cast("dict[str, JsonObject]", schema["properties"])


def example_of(schema: JsonObject, document: JsonObject, depth: int = 0) -> JsonValue:
    """Build an example of a schema from the examples of its fields.

    Raises:
        LookupError: the schema needs a field of which there is no example.
    """
    if "$ref" in schema:
        return example_of(_target(schema, document), document, depth)
    for name in ("examples", "enum"):
        values = schema.get(name)
        if isinstance(values, list) and values:
            return values[0]
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    for name in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(name)
        if isinstance(choices, list) and choices:
            # what may be null is null in an example, unless it has an example of its own
            return None if {"type": "null"} in choices else example_of(_object(choices[0]), document, depth)
    return _build(schema, document, depth)


def _build(schema: JsonObject, document: JsonObject, depth: int) -> JsonValue:
    kind = schema.get("type")
    if kind == "object" and isinstance(schema.get("properties"), dict) and depth < _DEEPEST_EXAMPLE:
        return {name: example_of(field, document, depth + 1) for name, field in _fields_of_example(schema)}
    if kind == "object":
        return {}
    if kind == "array":
        try:
            return [example_of(_object(schema["items"]), document, depth + 1)]
        except LookupError:
            return []
    if kind in _PLAIN_EXAMPLES:
        return _PLAIN_EXAMPLES[kind]
    raise LookupError(f"no example of {schema.get('title', kind)}")


def _fields_of_example(schema: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield the fields that an example shows: those that must be there, and those that have an example of their own."""
    required = cast("Sequence[str]", schema.get("required", ()))
    for name, field in fields_of(schema).items():
        if name in required or "examples" in field or "const" in field:
            yield name, field


def _describe(operation: JsonObject, said: OperationWords, reference: Reference, document: JsonObject) -> None:
    for parameter in cast("list[JsonObject]", operation.get("parameters", [])):
        words = reference.parameters.get(str(parameter["name"]))
        if words is not None:
            _say(parameter, words.description, f"the parameter {parameter['name']}")
            if words.examples:
                parameter.setdefault("example", words.examples[0])
    if isinstance(operation.get("requestBody"), dict):
        _add_example(_object(operation["requestBody"]), said.request_example, document)
    for status, given in _object(operation["responses"]).items():
        answer = _object(given)
        if answer.get("description") in _GENERATED_DESCRIPTIONS:
            answer["description"] = said.answer or _what_is_answered(answer, document)
        if str(status).startswith("2"):
            _add_example(answer, said.answer_example, document)


def _say(thing: JsonObject, description: str, place: str) -> None:
    if thing.setdefault("description", description) != description:
        raise ValueError(f"{place} is described in the code and in a {FILE_NAME}: one of them is read by nobody")


def _what_is_answered(answer: JsonObject, document: JsonObject) -> str:
    """Return what the code says of the object that is answered."""
    content = _object(_object(answer.get("content", {})).get("application/json", {}))
    schema = _object(content.get("schema", {}))
    choices = cast("list[JsonObject]", schema.get("anyOf", [schema]))
    texts = [str(_target(choice, document).get("description", "")).partition("\n")[0] for choice in choices]
    return " Or: ".join(text for text in texts if text)


def _target(schema: JsonObject, document: JsonObject) -> JsonObject:
    """Return the schema that a schema refers to, or itself."""
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    schemas = _object(_object(document["components"])["schemas"])
    return _object(schemas[reference.removeprefix(_SCHEMA_REFERENCE)])


def _add_example(body: JsonObject, example: JsonValue, document: JsonObject) -> None:
    content = _object(body.get("content", {})).get("application/json")
    if not isinstance(content, dict):
        return
    schema = _object(content.get("schema", {}))
    if example is None:
        try:
            example = example_of(schema, document)
        except LookupError:
            return
    content.setdefault("example", example)


def _words(entries: Mapping[str, object]) -> dict[str, FieldWords]:
    return {
        name: FieldWords(said) if isinstance(said, str) else _with_examples(cast("Sequence[JsonValue]", said))
        for name, said in entries.items()
    }


def _with_examples(said: Sequence[JsonValue]) -> FieldWords:
    description, *examples = said
    return FieldWords(str(description), tuple(examples))


def _object(value: object) -> JsonObject:
    return cast(JsonObject, value)
