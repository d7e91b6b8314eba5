"""Keep the tables of docs/settings.md true to the types of the settings: `python -m deploy.site.settings_page`.

A row is `| name | default | type | meaning |`; the meaning is written by hand, and all else comes from the types.
"""

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from backend.settings import Settings as BackendSettings
from chat_shell.settings import Settings as ChatShellSettings
from shared.environment import ServiceSettings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"
SERVICES: tuple[type[ServiceSettings], ...] = (BackendSettings, ChatShellSettings)
_ROW = re.compile(r"^\| `([A-Z_]+)` \|.*\| (.*) \|$", re.MULTILINE)
_KINDS = {
    "password": "secret ●",
    "path": "path of a file",
    "integer": "whole number",
    "number": "number",
    "boolean": "`1` or `0`",
    "string": "text",
    "array": "list with commas",
}
_LIMITS = {"minimum": "from {}", "exclusiveMinimum": "above {}", "maximum": "to {}"}
_CHARACTERS = {"maxLength": "at most {} characters"}


def main() -> None:
    """Write the page anew, with the meanings that it has."""
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def rewritten(page: str) -> str:
    """Return the page with the default and the type of each setting as they are; a row of no setting stays."""
    rows = {name: row for settings in SERVICES for name, row in rows_of(settings).items()}
    return _ROW.sub(lambda found: f"{rows[found[1]]} {found[2]} |" if found[1] in rows else found[0], page)


def list_named_settings(page: str) -> list[str]:
    """Return the settings that have a row, in the order of the page."""
    return [name for name, _ in _ROW.findall(page)]


def rows_of(settings: type[ServiceSettings]) -> dict[str, str]:
    """Return, by the name of each setting, its row up to where the meaning begins."""
    schema = settings.model_json_schema()
    return {
        name: f"| `{name}` | {_default(field.default)} | {_kind(schema['properties'][name], schema['$defs'])} |"
        for field in settings.model_fields.values()
        if (name := field.alias)
    }


def _default(value: object) -> str:
    if value is PydanticUndefined:
        return "required"
    text = _as_set(value)
    return f"`{text}`" if text else "empty"


def _as_set(value: object) -> str:
    """Return a value as somebody would write it into the environment."""
    match value:
        case None:
            return ""
        case bool():
            return str(int(value))
        case Enum():
            return str(value.value)
        case BaseModel():
            return ",".join(f"{name}={part}" for name, part in value)
        case tuple():
            return ",".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return str(value)


def _kind(field: Mapping[str, Any], definitions: Mapping[str, Mapping[str, Any]]) -> str:
    choices = [choice for choice in field.get("anyOf", [field]) if choice.get("type") != "null"]
    schema = choices[0]
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "properties" in schema:
        return f"`{','.join(f'{name}=…' for name in schema['properties'])}`"
    kind = _KINDS[schema.get("format", schema["type"])]
    bounds = " ".join(form.format(schema[name]) for name, form in _LIMITS.items() if name in schema)
    characters = [form.format(schema[name]) for name, form in _CHARACTERS.items() if name in schema]
    return ", ".join([f"{kind} {bounds}".strip(), *characters])


if __name__ == "__main__":
    main()
