"""The server of the Model Context Protocol: one for each request, which knows its caller and nothing else.

The protocol's library answers handshakes, versions and malformed messages. Nothing is kept from one request to the
next, so that any replica answers any of them.
"""

import logging
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import mcp_types as types
import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from backend.extraction.domain.media_types import MARKDOWN, TEXT
from backend.foundation.services.supervision import result_or_error
from backend.mcp.domain.resource_addresses import (
    PAGED_TEMPLATE,
    TEMPLATE,
    address_of,
    cursor_of,
    read_address,
    read_cursor,
)
from backend.mcp.server.tools import MAX_PAGE_CHARACTERS, TOOLS, CallerTools, KnowledgeTool, ToolOutcome
from shared.errors import BallastError, InvalidRequest, NotFound, PermissionDenied
from shared.models.invalid_fields import refusal_of
from shared.telemetry import LogEvent, origin_of

log = structlog.get_logger("backend.mcp")

NAME = "ballast"
VERSION = "1"
"""Grows when a tool or resource is taken away, or changes its meaning."""

INSTRUCTIONS = (
    "Knowledge bases of this organisation, under the rights of the user whose key is used. Begin with "
    "list_knowledge_bases, search with search_knowledge, and cite what is found by document and heading."
)
DEFECT = "The server had an error while answering. The request id tells the operator which."
_LONGEST_SHOWN_NAME = 64
_PAGE_META = "ballast/page"
_CODES: Mapping[type[BallastError], int] = {
    InvalidRequest: types.INVALID_PARAMS,
    NotFound: types.INVALID_PARAMS,
    PermissionDenied: types.INVALID_REQUEST,
}
"""What is not named here is the server's own failure, `INTERNAL_ERROR`."""

_READ_ONLY = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_TOOL_LIST = [
    types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.arguments.model_json_schema(),
        output_schema=tool.result.model_json_schema(mode="serialization"),
        annotations=_READ_ONLY,
    )
    for tool in TOOLS.values()
]
_TEMPLATES = [
    types.ResourceTemplate(
        name="document",
        title="A document",
        uri_template=TEMPLATE,
        description="The beginning of a document's text, by the name or the id of the document.",
    ),
    types.ResourceTemplate(
        name="document_page",
        title="A page of a document",
        uri_template=PAGED_TEMPLATE,
        description=f"Up to `limit` characters (at most {MAX_PAGE_CHARACTERS}) of a document's text from `offset`.",
    ),
]

Result = TypeVar("Result")
Context = ServerRequestContext[Any, Any]

# The library's own lines hold what clients send, such as names of methods.
for _library in ("mcp", "sse_starlette"):
    logging.getLogger(_library).setLevel(logging.CRITICAL)


async def answer_message(tools: CallerTools, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one HTTP request that holds one message, with JSON."""
    transport = StreamableHTTPSessionManager(_Handlers(tools).server(), json_response=True, stateless=True)
    async with transport.run():
        await transport.handle_request(scope, receive, send)


class _Handlers:
    """Answers the requests of one caller."""

    def __init__(self, tools: CallerTools) -> None:
        self._tools = tools

    def server(self) -> Server[Any]:
        return Server(
            NAME,
            version=VERSION,
            title="Ballast knowledge",
            instructions=INSTRUCTIONS,
            get_tool_input_schema=_input_schema,
            on_list_tools=_list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=_list_templates,
            on_read_resource=self.read_resource,
        )

    async def call_tool(self, _context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            names = ", ".join(TOOLS)
            shown = params.name[:_LONGEST_SHOWN_NAME]
            raise MCPError(types.INVALID_PARAMS, f"name: there is no tool {shown!r}; there are {names}")
        try:
            outcome = await _without_defects(self._run(tool, params.arguments or {}))
        except BallastError as error:
            return types.CallToolResult(content=[_text(_words_of(error))], is_error=True)
        structured = outcome.structured.model_dump(mode="json")
        return types.CallToolResult(content=[_text(each) for each in outcome.texts], structured_content=structured)

    async def list_resources(
        self, _context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        cursor = params.cursor if params is not None else None
        return await _protocol_errors(self._resources(cursor))

    async def read_resource(
        self, _context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await _protocol_errors(self._resource(params.uri))

    async def _run(self, tool: KnowledgeTool, arguments: dict[str, Any]) -> ToolOutcome:
        try:
            given = tool.arguments.model_validate(arguments)
        except ValidationError as error:
            raise refusal_of(error, given=arguments) from None
        return await tool.run(self._tools, given)

    async def _resources(self, cursor: str | None) -> types.ListResourcesResult:
        place = read_cursor(cursor) if cursor is not None else None
        page = await self._tools.resources(place)
        resources = [
            types.Resource(
                name=document.name,
                uri=address_of(document.knowledge_base_id, document.name),
                mime_type=_type_of_text(document.media_type),
            )
            for document in page.documents
        ]
        next_cursor = cursor_of(page.next_place) if page.next_place is not None else None
        return types.ListResourcesResult(resources=resources, next_cursor=next_cursor)

    async def _resource(self, uri: str) -> types.ReadResourceResult:
        address = read_address(uri)
        limit = min(address.limit or MAX_PAGE_CHARACTERS, MAX_PAGE_CHARACTERS)
        page = await self._tools.text(address.knowledge_base_id, address.document, address.offset, limit)
        meta = {"offset": page.offset, "next_offset": page.next_offset, "total_characters": page.total_characters}
        contents = types.TextResourceContents(
            uri=uri, mime_type=_type_of_text(page.document.media_type), text=page.text, _meta={_PAGE_META: meta}
        )
        return types.ReadResourceResult(contents=[contents])


async def _list_tools(_context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=_TOOL_LIST)


async def _list_templates(
    _context: Context, _params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=_TEMPLATES)


def _input_schema(name: str) -> Mapping[str, Any] | None:
    return next((tool.input_schema for tool in _TOOL_LIST if tool.name == name), None)


async def _without_defects(work: Coroutine[object, None, Result]) -> Result:
    """Run work; an unexpected exception is logged without its text and told as a defect, without its text, too.

    Raises:
        BallastError: what the work raises for its caller.
        MCPError: a defect.
    """
    outcome = await result_or_error(work)
    if isinstance(outcome, BallastError):
        if not isinstance(outcome, tuple(_CODES)):
            log.error(LogEvent.REQUEST_FAILED, **origin_of(outcome))
        raise outcome
    if isinstance(outcome, BaseException):
        log.error("Unexpected error", **origin_of(outcome))
        raise MCPError(types.INTERNAL_ERROR, DEFECT)
    return outcome


async def _protocol_errors(work: Coroutine[object, None, Result]) -> Result:
    """Run work; what it raises for its caller becomes an error of the protocol."""
    try:
        return await _without_defects(work)
    except BallastError as error:
        code = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), types.INTERNAL_ERROR)
        raise MCPError(code, _words_of(error)) from None


def _words_of(error: BallastError) -> str:
    """Return the message with the name of the field that it is about."""
    is_named = f"'{error.param}'" in error.message or error.message.startswith(f"{error.param}:")
    return error.message if error.param is None or is_named else f"{error.param}: {error.message}"


def _type_of_text(media_type: str) -> str:
    """Return the format of a document's text: other formats than text are read as Markdown."""
    return TEXT if media_type == TEXT else MARKDOWN


def _text(words: str) -> types.TextContent:
    return types.TextContent(text=words)
