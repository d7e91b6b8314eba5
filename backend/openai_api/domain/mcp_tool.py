"""The tool by which a request or an agent names a tool server, in OpenAI's words."""

from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from backend.conversations.domain.input_items import Given
from shared.models.values import JsonValue

MAX_NAMES = 256
ToolNames = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=256)]], Field(max_length=MAX_NAMES, fail_fast=True)
]


def _tag_of_names(value: object) -> str:
    return "list" if isinstance(value, list) else "object"


class McpToolNames(Given):
    """The tools of a tool server that may be called, as an object."""

    is_strict: ClassVar[bool] = True
    tool_names: ToolNames


class McpTool(Given):
    """Tools of a tool server that the operator has configured, by its label; all of them where none are named.

    The fields by which OpenAI's API names servers, and `require_approval`, are read for errors that say what to give.
    """

    is_strict: ClassVar[bool] = True
    type: Literal["mcp"]
    server_label: Annotated[str, Field(min_length=1, max_length=64)]
    allowed_tools: (
        Annotated[
            Annotated[ToolNames, Tag("list")] | Annotated[McpToolNames, Tag("object")], Discriminator(_tag_of_names)
        ]
        | None
    ) = None
    require_approval: JsonValue = None
    server_url: JsonValue = None
    connector_id: JsonValue = None
    tunnel_id: JsonValue = None
    headers: JsonValue = None
    authorization: JsonValue = None

    @property
    def tool_names(self) -> list[str] | None:
        """The tools that may be called; None where all may."""
        return self.allowed_tools.tool_names if isinstance(self.allowed_tools, McpToolNames) else self.allowed_tools

    @property
    def names_field(self) -> str:
        """The path of the names within the tool."""
        return "allowed_tools.tool_names" if isinstance(self.allowed_tools, McpToolNames) else "allowed_tools"
