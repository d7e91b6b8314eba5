"""A tool server over streamable HTTP: each call has a session of its own, so that no call knows of another."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx2
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from chat_shell.tools.domain.definitions import ListedTool
from chat_shell.tools.domain.server_entry import ServerEntry, WebServer
from chat_shell.tools.mcp.bounded_transport import BoundedTransport
from chat_shell.tools.mcp.messages import call_tool, read_list
from chat_shell.tools.mcp.sessions import ServerTasks
from chat_shell.tools.ports.tool_servers import CallResult, ToolServerFailed
from shared.models.values import JsonObject

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
