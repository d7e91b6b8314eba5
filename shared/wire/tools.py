"""Convert definitions of tools, and what chat_shell offers of tool servers, to protobuf messages, and back."""

from collections.abc import Iterable, Sequence

from pydantic import ValidationError

from protos.execution.v1 import chat_shell_pb2 as lists_pb
from protos.execution.v1 import request_pb2 as pb
from shared.models.execution import ServedTool, ToolDefinition
from shared.models.invalid_fields import refusal_of
from shared.models.served_tools import OfferedTools, ServerTools, SkillCard
from shared.wire.values import object_from_proto, object_to_proto, optional, require, scalar_fields, unwritable


def tool_to_proto(tool: ToolDefinition, place: str) -> pb.ToolDefinition:
    """Convert a definition; `place` is its path in errors."""
    return pb.ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters=object_to_proto(tool.parameters, f"{place}.parameters"),
        strict=tool.strict,
    )


def tool_from_proto(tool: pb.ToolDefinition, place: str) -> ToolDefinition:
    """Read a definition.

    Raises:
        InvalidRequest: its parameters are no JSON object.
    """
    return ToolDefinition(
        name=tool.name,
        description=optional(tool, "description"),
        parameters=object_from_proto(optional(tool, "parameters"), f"{place}.parameters"),
        strict=optional(tool, "strict"),
    )


def served_to_proto(tools: Sequence[ServedTool], place: str) -> list[pb.ServedTool]:
    """Convert tools of tool servers; `place` is the path of the list in errors."""
    return [
        pb.ServedTool(
            definition=tool_to_proto(tool.definition, f"{place}[{index}].definition"),
            server=tool.server,
            tool=tool.tool,
            accepts_restricted=tool.accepts_restricted,
        )
        for index, tool in enumerate(tools)
    ]


def served_from_proto(tools: Iterable[pb.ServedTool], place: str) -> tuple[ServedTool, ...]:
    """Read tools of tool servers.

    Raises:
        InvalidRequest: a definition is missing or malformed.
    """
    return tuple(_served_from_proto(tool, f"{place}[{index}]") for index, tool in enumerate(tools))


def _served_from_proto(tool: pb.ServedTool, place: str) -> ServedTool:
    require(tool.HasField("definition"), f"{place}.definition")
    return ServedTool(
        definition=tool_from_proto(tool.definition, f"{place}.definition"),
        server=tool.server,
        tool=tool.tool,
        accepts_restricted=tool.accepts_restricted,
    )


def offered_to_proto(offered: OfferedTools) -> lists_pb.ListToolsResponse:
    """Convert what chat_shell offers.

    Raises:
        InvalidRequest: a text holds a lone surrogate, or a value cannot be written as JSON.
    """
    try:
        servers = [
            lists_pb.ServerTools(
                server=one.server,
                is_known=one.is_known,
                tools=served_to_proto(one.tools, f"servers[{index}].tools"),
            )
            for index, one in enumerate(offered.servers)
        ]
        skills = [lists_pb.SkillCard(**dict(skill)) for skill in offered.skills]
        return lists_pb.ListToolsResponse(servers=servers, skills=skills)
    except ValueError as error:
        raise unwritable(offered) from error


def offered_from_proto(offered: lists_pb.ListToolsResponse) -> OfferedTools:
    """Read what chat_shell offers.

    Raises:
        InvalidRequest: a definition is missing or malformed.
    """
    try:
        servers = tuple(
            ServerTools(
                server=one.server,
                is_known=one.is_known,
                tools=served_from_proto(one.tools, f"servers[{index}].tools"),
            )
            for index, one in enumerate(offered.servers)
        )
        skills = tuple(SkillCard.model_validate(scalar_fields(skill)) for skill in offered.skills)
        return OfferedTools(servers=servers, skills=skills)
    except ValidationError as error:
        raise refusal_of(error) from error
