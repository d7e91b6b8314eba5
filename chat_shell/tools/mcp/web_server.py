"""A tool server over streamable HTTP: each call has a session of its own, so that no call knows of another."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import httpx2
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from chat_shell.tools.domain.definitions import ListedTool
from chat_shell.tools.domain.server_entry import ServerEntry, WebServer
from chat_shell.tools.mcp.messages import MessageTooLarge, call_tool, failure_of, read_list
from chat_shell.tools.mcp.sessions import ServerTasks
from chat_shell.tools.ports.tools import CallFailure, CallResult, ToolServerFailed
from shared.models.values import JsonObject


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Sends requests over connections that others use, too, and reads no more than `max_bytes` of each answer.

    The first failure is kept, because the library above answers it with a message of its own.
    """

    def __init__(self, connections: httpx2.AsyncBaseTransport, max_bytes: int) -> None:
        self._connections = connections
        self._max_bytes = max_bytes
        self.failure: CallFailure | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        Raises:
            MessageTooLarge: the answer announces more than may be read, or is compressed.
            httpx2.HTTPError: there is no answer.
        """
        try:
            response = await self._connections.handle_async_request(request)
        except httpx2.HTTPError as error:
            self.note(error)
            raise
        announced = response.headers.get("content-length", "0")
        if response.headers.get("content-encoding", "identity") != "identity" or (
            announced.isdecimal() and int(announced) > self._max_bytes
        ):
            await response.aclose()
            raise self.note(MessageTooLarge("the answer is too large"))
        response.stream = _BoundedBody(self, response.stream, self._max_bytes)
        return response

    async def aclose(self) -> None:
        """Leave the connections open for others."""

    def note(self, error: httpx2.HTTPError | MessageTooLarge) -> Exception:
        """Keep what an error says of the server, where nothing went wrong before; return the error."""
        self.failure = self.failure or failure_of(error)
        return error

    def raise_failure(self) -> None:
        """Raise the failure where there was one.

        Raises:
            ToolServerFailed: there was one.
        """
        if self.failure is not None:
            raise ToolServerFailed(self.failure)


class _BoundedBody(httpx2.AsyncByteStream):
    def __init__(self, transport: BoundedTransport, body: httpx2.SyncByteStream | httpx2.AsyncByteStream, most: int):
        self._transport = transport
        self._body = body
        self._left_bytes = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if not isinstance(self._body, httpx2.AsyncByteStream):
            raise self._transport.note(MessageTooLarge("the answer cannot be read in pieces"))
        try:
            async for piece in self._body:
                self._left_bytes -= len(piece)
                if self._left_bytes < 0:
                    raise MessageTooLarge("the answer is too large")
                yield piece
        except (httpx2.HTTPError, MessageTooLarge) as error:
            raise self._transport.note(error) from error

    async def aclose(self) -> None:
        if isinstance(self._body, httpx2.AsyncByteStream):
            await self._body.aclose()


T = TypeVar("T")

CONNECT_SECONDS = 10.0
ANY_PROTOCOL = "auto"
HANDSHAKE_PROTOCOL = "legacy"


class WebToolServer:
    """Implements `ToolServer` for a server behind an address.

    Cookies are not kept and redirects to other origins not followed: the operator's headers go to the one address
    alone.
    """

    def __init__(self, entry: ServerEntry, link: WebServer, proxy: str | None = None) -> None:
        self._link = link
        self._max_bytes = entry.max_message_bytes
        self._timeout = httpx2.Timeout(entry.timeout_seconds, connect=min(CONNECT_SECONDS, entry.timeout_seconds))
        # the authorities of the system, or those of SSL_CERT_FILE, as for all other ways out
        trusted = ssl.create_default_context()
        self._connections = httpx2.AsyncHTTPTransport(trust_env=False, verify=trusted, proxy=proxy)
        self._tasks = ServerTasks()
        self._protocol = ANY_PROTOCOL

    async def run(self) -> None:
        """Hold the connections until cancelled."""
        async with self._connections:
            await self._tasks.run(asyncio.Event().wait())

    async def list_tools(self) -> tuple[ListedTool, ...]:
        """Return its tools as it lists them now.

        Raises:
            ToolServerFailed: it gave no list.
        """
        self._protocol = ANY_PROTOCOL  # a server that was replaced may speak another
        return await self._in_session(read_list)

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        """Call a tool.

        Raises:
            ToolServerFailed: it gave no result.
        """
        return await self._in_session(lambda session: call_tool(session, tool, arguments))

    async def _in_session(self, work: Callable[[ClientSession], Awaitable[T]]) -> T:
        bounded = BoundedTransport(self._connections, self._max_bytes)
        try:
            return await self._tasks.result_of(lambda: self._work(bounded, work))
        except ToolServerFailed as failed:
            # The library tells of an error while it reads in words of its own.
            raise ToolServerFailed(bounded.failure or failed.failure) from None

    async def _work(self, bounded: BoundedTransport, work: Callable[[ClientSession], Awaitable[T]]) -> T:
        headers = {name: value.get_secret_value() for name, value in self._link.headers.items()}
        headers["accept-encoding"] = "identity"  # a compressed message may be of any size once it is read
        async with httpx2.AsyncClient(
            transport=bounded, headers=headers, timeout=self._timeout, trust_env=False
        ) as http_client:
            transport = streamable_http_client(
                self._link.address, http_client=http_client, max_sse_event_size=self._max_bytes
            )
            async with Client(transport, mode=self._protocol, cache=None) as client:
                is_modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
                self._protocol = client.protocol_version if is_modern else HANDSHAKE_PROTOCOL
                result = await work(client.session)
                if isinstance(result, CallResult) and result.failed:
                    # It may be what the library says of an answer that could not be read.
                    bounded.raise_failure()
                return result
