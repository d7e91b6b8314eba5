"""Tools that the client runs itself: functions, and custom tools, whose input is text."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from backend.conversations.domain.input_items import FunctionName, Given
from shared.errors import InvalidRequest
from shared.models.execution import ToolDefinition
from shared.models.values import JsonObject
from shared.prompts.custom_tools import custom_format, custom_tool

RESERVED_FUNCTION_PREFIX = "knowledge_base_"


class FunctionTool(Given):
    """A function that the client runs itself."""

    type: Literal["function"]
    name: FunctionName
    description: str | None = None
    parameters: JsonObject | None = None
    strict: bool | None = None


class PlainInput(Given):
    """Any text."""

    type: Literal["text"]


class GrammarInput(Given):
    """Text that a grammar accepts."""

    type: Literal["grammar"]
    syntax: Literal["lark", "regex"]
    definition: str


class CustomTool(Given):
    """A tool that the client runs itself, whose input is text in place of JSON."""

    type: Literal["custom"]
    name: FunctionName
    description: str | None = None
    format: Annotated[PlainInput | GrammarInput, Field(discriminator="type")] = PlainInput(type="text")


class FunctionChoice(Given):
    """This function, or custom tool, must be called."""

    type: Literal["function", "custom"]
    name: FunctionName


def function_definitions(tools: Iterable[object]) -> tuple[ToolDefinition, ...]:
    """Return the functions and custom tools among tools, by name."""
    definitions = [
        custom_tool(tool.name, tool.description, tool.format.model_dump())
        if isinstance(tool, CustomTool)
        else ToolDefinition(
            name=tool.name, description=tool.description, parameters=tool.parameters, strict=tool.strict
        )
        for tool in tools
        if isinstance(tool, FunctionTool | CustomTool)
    ]
    return tuple(sorted(definitions, key=lambda definition: definition.name))


def check_functions(tools: Iterable[object]) -> None:
    """Check that functions and custom tools have names of their own, and that none of the former looks like the latter.

    Raises:
        InvalidRequest: a name stands twice or is reserved, or parameters are; `param` names them, such as
            `tools[1].name`.
    """
    names: set[str] = set()
    for place, tool in enumerate(tools):
        if not isinstance(tool, FunctionTool | CustomTool):
            continue
        if isinstance(tool, FunctionTool) and custom_format(tool.parameters) is not None:
            message = "These parameters stand for a custom tool; give a tool of the type 'custom', or describe them."
            raise InvalidRequest(message, param=f"tools[{place}].parameters")
        param = f"tools[{place}].name"
        if tool.name in names:
            raise InvalidRequest(
                f"The function {tool.name!r} is given twice; each must have a name of its own.", param=param
            )
        if tool.name.startswith(RESERVED_FUNCTION_PREFIX):
            message = f"Names that begin with {RESERVED_FUNCTION_PREFIX!r} are reserved; use another one."
            raise InvalidRequest(message, param=param)
        names.add(tool.name)
