"""The tools of tool servers that a request or an agent selects, in OpenAI's words."""

from collections.abc import Sequence

from backend.conversations.domain.served_tools import ServerChoice, ToolSelection
from backend.openai_api.domain.mcp_tool import McpTool
from backend.openai_api.domain.turn_request import Tool
from shared.errors import InvalidRequest, UnsupportedValue
from shared.models.served_tools import OfferedTools, ServerTools

MAX_LISTED = 30
"""How many names an error lists."""

_SERVER_FIELDS = ("server_url", "connector_id", "tunnel_id", "headers", "authorization")


def selection_of(tools: Sequence[Tool], skills: Sequence[str] = ()) -> ToolSelection:
    """Return what these tools and skills want; a server that is named twice gives what either wants."""
    selection = ToolSelection(skills=tuple(sorted(set(skills))))
    for tool in tools:
        if isinstance(tool, McpTool):
            names = tool.tool_names
            choice = ServerChoice(
                server=tool.server_label, tools=tuple(sorted(set(names))) if names is not None else None
            )
            selection = selection.join(ToolSelection(servers=(choice,)))
    return selection


def check_selection(tools: Sequence[Tool], skills: Sequence[str], offered: OfferedTools) -> None:
    """Check that the operator offers what tools and skills name.

    Raises:
        InvalidRequest: there is no such server, tool or skill; `param` names the place.
        UnsupportedValue: a tool names a server by its address, or wants its calls approved.
    """
    servers = {one.server: one for one in offered.servers}
    for place, tool in enumerate(tools):
        if isinstance(tool, McpTool):
            _check_server(tool, servers, f"tools[{place}]")
    names = [card.name for card in offered.skills]
    for place, skill in enumerate(skills):
        if skill not in names:
            raise InvalidRequest(f"There is no skill {skill!r}; {_list(names)}.", param=f"skills[{place}]")


def _check_server(tool: McpTool, servers: dict[str, ServerTools], param: str) -> None:
    for field in _SERVER_FIELDS:
        if getattr(tool, field) is not None:
            labels = _list(sorted(servers))
            message = f"Servers are named by the operator: leave this field out, and give 'server_label'; {labels}."
            raise UnsupportedValue(message, param=f"{param}.{field}")
    if tool.require_approval not in (None, "never"):
        message = "Calls are made without asking the client for approval; give 'never', or leave this field out."
        raise UnsupportedValue(message, param=f"{param}.require_approval")
    server = servers.get(tool.server_label)
    if server is None:
        message = f"There is no tool server {tool.server_label!r}; {_list(sorted(servers))}."
        raise InvalidRequest(message, param=f"{param}.server_label")
    known = [one.tool for one in server.tools]
    for place, name in enumerate(tool.tool_names or ()):
        if server.is_known and name not in known:
            message = f"The tool server {server.server!r} has no tool {name!r}; {_list(known)}."
            raise InvalidRequest(message, param=f"{param}.{tool.names_field}[{place}]")


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:MAX_LISTED])
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return f"use one of {shown}{more}" if names else "none is offered here"
