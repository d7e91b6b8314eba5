"""The definitions that models get of the tools of a server."""

from collections.abc import Sequence
from typing import NamedTuple

from chat_shell.tools.domain.schemas import SchemaRefused, clean_description, clean_schema
from chat_shell.tools.domain.server_entry import ServerEntry
from shared.models.canonical import canonical_parts
from shared.models.execution import ServedTool, ToolDefinition
from shared.models.served_tools import model_name
from shared.models.values import JsonValue, Value

MAX_NAME_CHARACTERS = 64
"""The limit of all providers for the name of a function."""
MAX_SERVED_TOOLS = 128
"""Of one server: OpenAI's API takes 128 functions in all."""
MAX_LIST_BYTES = 262_144
"""Of all definitions of one server: each request carries them, and 65,000 tokens are half of a usual window."""


class ListedTool(Value):
    """A tool as its server lists it, unchecked."""

    name: str
    description: str | None
    parameters: JsonValue


class DroppedTool(NamedTuple):
    """A tool that is not offered, and why."""

    tool: str
    reason: str


class CheckedTools(NamedTuple):
    """What is offered of a server's list, sorted by name, and what is not."""

    tools: tuple[ServedTool, ...]
    dropped: tuple[DroppedTool, ...]


def check_list(entry: ServerEntry, listed: Sequence[ListedTool]) -> CheckedTools:
    """Return the tools of a server that may be offered. The order of the list changes nothing."""
    taken: dict[str, ServedTool] = {}
    left_bytes = MAX_LIST_BYTES
    dropped: list[DroppedTool] = []
    for tool in sorted((tool for tool in listed if entry.may_call(tool.name)), key=_order):
        try:
            served = _serve(entry, tool)
            size_bytes = len(canonical_parts((served.definition,), ())[0])
            _check_free(served, taken, left_bytes - size_bytes)
        except SchemaRefused as refusal:
            dropped.append(DroppedTool(tool.name[:MAX_NAME_CHARACTERS], str(refusal)))
        else:
            taken[served.definition.name] = served
            left_bytes -= size_bytes
    return CheckedTools(tuple(taken[name] for name in sorted(taken)), tuple(dropped))


def _order(tool: ListedTool) -> tuple[str, str, str]:
    return tool.name, tool.description or "", repr(tool.parameters)


def _check_free(served: ServedTool, taken: dict[str, ServedTool], left_bytes: int) -> None:
    name = served.definition.name
    if len(name) > MAX_NAME_CHARACTERS:
        raise SchemaRefused(f"its name with that of the server has more than {MAX_NAME_CHARACTERS} characters")
    if name in taken:
        raise SchemaRefused("another tool of the server has the same name")
    if len(taken) >= MAX_SERVED_TOOLS:
        raise SchemaRefused(f"the server has more than {MAX_SERVED_TOOLS} tools")
    if left_bytes < 0:
        raise SchemaRefused(f"the definitions of the server's tools have more than {MAX_LIST_BYTES:,} bytes")


def _serve(entry: ServerEntry, tool: ListedTool) -> ServedTool:
    if not tool.name:
        raise SchemaRefused("it has no name")
    definition = ToolDefinition(
        name=model_name(entry.name, tool.name),
        description=clean_description(tool.description),
        parameters=clean_schema(tool.parameters),
        strict=None,
    )
    return ServedTool(
        definition=definition, server=entry.name, tool=tool.name, accepts_restricted=entry.accepts_restricted
    )
