"""JSON schemas without references, for places of the OpenAPI document that pydantic does not fill."""

from typing import cast

from pydantic import BaseModel

from shared.models.execution import JsonObject

REF_PREFIX = "#/$defs/"


def inline_references(schema: JsonObject) -> JsonObject:
    """Replace references into `$defs` by the definitions; no definition may be recursive."""
    definitions = cast(JsonObject, schema.get("$defs", {}))
    without = {key: value for key, value in schema.items() if key != "$defs"}
    return cast(JsonObject, _resolve(without, definitions))


def describe_body(kind: type[BaseModel], *, required: bool = True) -> dict[str, object]:
    """Return the part of the OpenAPI document about a JSON body that a route reads by itself."""
    schema = inline_references(kind.model_json_schema())
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


def _resolve(value: object, definitions: JsonObject, within: frozenset[str] = frozenset()) -> object:
    """Resolve references; one to a definition that it stands in becomes an outline, because it would have no end."""
    if isinstance(value, list):
        return [_resolve(item, definitions, within) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, object]", value)
    reference = fields.get("$ref")
    if isinstance(reference, str) and reference.startswith(REF_PREFIX):
        name = reference.removeprefix(REF_PREFIX)
        definition = cast(JsonObject, definitions[name])
        return _outline(definition) if name in within else _resolve(definition, definitions, within | {name})
    # A discriminator's mapping consists of references, which an inlined schema does not need.
    return {key: _resolve(field, definitions, within) for key, field in fields.items() if key != "discriminator"}


def _outline(definition: JsonObject) -> JsonObject:
    """Return a schema of the fields alone that tell what kind of object it is."""
    fields = cast("dict[str, JsonObject]", definition.get("properties", {}))
    telling = {name: field for name, field in fields.items() if "const" in field or "enum" in field}
    return {"type": "object", "title": definition["title"], "properties": telling, "required": list(telling)}
