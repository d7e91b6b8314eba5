"""The API reference as pages of Markdown, from the OpenAPI document."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Object = Mapping[str, Any]

OBJECTS_PAGE = "objects.md"
_LIMITS = {
    "minimum": "from {}",
    "maximum": "up to {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} entries",
    "maxItems": "at most {} entries",
    "default": "default `{}`",
}


def reference_pages(document: Object) -> dict[str, str]:
    """Return the pages by their file names: one for each tag of the operations, and one with all objects."""
    pages: dict[str, list[str]] = {}
    schemas: Mapping[str, Object] = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tag = operation["tags"][0]
            page = pages.setdefault(f"{slug(tag)}.md", [f"# {tag}"])
            page.extend(_operation(f"{method.upper()} {path}", operation, schemas))
    pages[OBJECTS_PAGE] = ["# Objects", *(line for name in sorted(schemas) for line in _object(name, schemas[name]))]
    return {name: "\n\n".join(parts) + "\n" for name, parts in pages.items()}


def slug(title: str) -> str:
    """Return the name of a title in addresses."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _operation(address: str, operation: Object, schemas: Mapping[str, Object]) -> Iterator[str]:
    yield f"## {operation['summary']}"
    yield f"`{address}`"
    yield operation.get("description", "")
    parameters: Sequence[Object] = operation.get("parameters", ())
    if parameters:
        rows = ((f"`{each['name']}`", each["in"], _kind(each["schema"]), _explain(each)) for each in parameters)
        yield _table(("parameter", "in", "type", "meaning"), rows)
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"**Body**, `{kind}`: {_kind(content['schema'])}"
        yield from _fields(schemas.get(_name_of(content["schema"]), content["schema"]))
        yield from _example(content)
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            yield f"**Answer {status}**: {answer['description']}"
            for kind, content in answer.get("content", {}).items():
                yield f"`{kind}`: {_kind(content.get('schema', {}))}"
                yield from _example(content)


def _object(name: str, schema: Object) -> Iterator[str]:
    yield f"## {name}"
    yield schema.get("description", "")
    if "properties" in schema:
        yield from _fields(schema)
    else:
        yield _kind(schema)


def _fields(schema: Object) -> Iterator[str]:
    required = schema.get("required", ())
    fields: Mapping[str, Object] = schema.get("properties", {})
    if fields:
        rows = (
            (f"`{name}`" + (" *" if name in required else ""), _kind(field), _explain(field))
            for name, field in fields.items()
        )
        yield _table(("field (* required)", "type", "meaning"), rows)


def _explain(described: Object) -> str:
    limits = [form.format(described[name]) for name, form in _LIMITS.items() if described.get(name) not in (None, "")]
    return " ".join([described.get("description", ""), f"({', '.join(limits)})" if limits else ""]).strip()


def _kind(schema: Object) -> str:
    """Say in words what values a schema takes."""
    if name := _name_of(schema):
        return f"[{name}]({OBJECTS_PAGE}#{slug(name)})"
    choices: Sequence[Object] = schema.get("anyOf") or schema.get("oneOf") or ()
    if choices:
        return " or ".join(dict.fromkeys(map(_kind, choices)))
    values: Sequence[object] = [schema["const"]] if "const" in schema else schema.get("enum", ())
    if values:
        return " or ".join(f"`{value}`" for value in values)
    return _plain_kind(schema)


def _name_of(schema: Object) -> str:
    return schema.get("$ref", "").rpartition("/")[2]


def _plain_kind(schema: Object) -> str:
    kind = schema.get("type", "any JSON")
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    inner = schema.get("additionalProperties")
    if kind == "object" and isinstance(inner, dict) and inner:
        return f"object of {_kind({**inner})}"
    return {"binary": "bytes of a file"}.get(schema.get("format", ""), kind)


def _example(content: Object) -> Iterator[str]:
    if "example" in content:
        given = content["example"]
        text = given if isinstance(given, str) else json.dumps(given, indent=2, ensure_ascii=False)
        yield f"```{'text' if isinstance(given, str) else 'json'}\n{text}\n```"


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
