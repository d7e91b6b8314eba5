"""Lists and results of the Model Context Protocol as our own values, and failures of the library as ours."""

import logging
from collections.abc import Iterator, Sequence

import anyio
import httpx2
import mcp_types as types
import orjson
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from chat_shell.tools.domain.definitions import ListedTool
from chat_shell.tools.ports.tools import CallFailure, CallResult
from shared.models.values import JsonObject
from shared.prompts.tool_servers import binary_line

MAX_PAGES = 20
MAX_LISTED = 1_000
"""Tools of one server; a list that is longer is cut, whatever the server says of further pages."""

# The library writes messages of servers into its own log, and errors of validation with what they were about.
for _library in ("mcp", "client", "httpx2", "httpcore2"):
    logging.getLogger(_library).setLevel(logging.CRITICAL + 1)


class MessageTooLarge(httpx2.StreamError):
    """A server sends a message that is longer than may be read."""


async def read_list(session: ClientSession) -> tuple[ListedTool, ...]:
    """Ask for all pages of a server's list.

    Raises:
        MCPError: the server refuses, or the connection is lost.
        ValidationError: it sends no list.
    """
    tools: list[ListedTool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        params = types.PaginatedRequestParams(cursor=cursor)
        page = await session.send_request(types.ListToolsRequest(params=params), types.ListToolsResult)
        tools += [
            ListedTool(name=tool.name, description=tool.description, parameters=tool.input_schema)
            for tool in page.tools
        ]
        cursor = page.next_cursor
        if not cursor or len(tools) >= MAX_LISTED:
            break
    return tuple(tools[:MAX_LISTED])


async def call_tool(session: ClientSession, tool: str, arguments: JsonObject) -> CallResult:
    """Call a tool. An error that the server itself reports is a result, too: the model can act on it.

    The result is not checked against the schema that the server gives for it, because nothing here relies on that.

    Raises:
        MCPError: the connection is lost.
        ValidationError: the server sends no result.
    """
    params = types.CallToolRequestParams(name=tool, arguments=arguments)
    try:
        result = await session.send_request(types.CallToolRequest(params=params), types.CallToolResult)
    except MCPError as error:
        if error.error.code == types.CONNECTION_CLOSED:
            raise
        return CallResult(text=error.error.message, failed=True)
    lines = [line for content in result.content for line in _lines(content)]
    if not lines and result.structured_content is not None:
        lines = [orjson.dumps(result.structured_content).decode()]
    return CallResult(text="\n".join(lines), failed=result.is_error is True)


def _lines(content: types.ContentBlock) -> Iterator[str]:
    match content:
        case types.TextContent():
            yield content.text
        case types.ImageContent() | types.AudioContent():
            yield binary_line(content.mime_type, _size_bytes(content.data))
        case types.ResourceLink():
            yield f"[{content.name}: {content.uri}]"
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            yield resource.text
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            yield binary_line(resource.mime_type or "application/octet-stream", _size_bytes(resource.blob))
        case _:
            yield f"[{content.type}, not shown]"


def _size_bytes(encoded: str) -> int:
    """Return the size of what is written in base64 (RFC 4648, section 4): three bytes for each four characters."""
    return len(encoded) * 3 // 4 - encoded[-2:].count("=")


def failure_of(error: Exception) -> CallFailure | None:
    """Return what an exception of the library says of a server; None for a defect of our own."""
    causes = list(_causes(error))
    if any(isinstance(each, MessageTooLarge) for each in causes):
        return CallFailure.TOO_LARGE
    if any(isinstance(each, TimeoutError | httpx2.TimeoutException) for each in causes):
        return CallFailure.TOO_SLOW
    if any(isinstance(each, httpx2.ConnectError | OSError) for each in causes):
        return CallFailure.AWAY
    if any(isinstance(each, httpx2.HTTPError | MCPError | anyio.BrokenResourceError) for each in causes):
        return CallFailure.BROKE
    if any(isinstance(each, anyio.ClosedResourceError | anyio.EndOfStream) for each in causes):
        return CallFailure.BROKE
    if any(isinstance(each, ValidationError | RuntimeError | ValueError) for each in causes):
        return CallFailure.UNREADABLE
    return None


def _causes(error: BaseException) -> Sequence[BaseException]:
    inner: Sequence[BaseException] = getattr(error, "exceptions", ())
    return [cause for each in inner for cause in _causes(each)] if inner else [error]
