"""The official client of the Model Context Protocol, over any HTTP client."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal, cast

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

Mode = Literal["legacy", "auto"]
"""Which era of the protocol: the handshake of 2025-11-25 and before, or the newest that both sides speak."""

HANDSHAKE = "2025-11-25"
ACCEPT = "application/json, text/event-stream"


@asynccontextmanager
async def mcp_client(http: httpx2.AsyncClient, mode: Mode = "auto") -> AsyncGenerator[Client]:
    """Open a client whose requests go through `http`, which brings base address and key."""
    transport = streamable_http_client(f"{str(http.base_url).rstrip('/')}/mcp", http_client=http)
    async with Client(transport, mode=mode) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> CallToolResult:
    """Call a tool."""
    return await client.call_tool(tool, arguments)


def texts_of(result: CallToolResult) -> list[str]:
    """Return the texts of a result, which has nothing else."""
    return [cast(TextContent, content).text for content in result.content]


def said(result: CallToolResult) -> dict[str, Any]:
    """Return the structured content of a call that succeeded."""
    assert not result.is_error, texts_of(result)
    return cast(dict[str, Any], result.structured_content)


def refusal_in(result: CallToolResult) -> str:
    """Return the message of a call that failed."""
    assert result.is_error, result
    (text,) = texts_of(result)
    return text


def message(method: str, number: int = 1, **params: Any) -> dict[str, Any]:
    """Return a JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def post(http: httpx2.AsyncClient, body: Any, **headers: str) -> httpx2.Response:
    """Send one message as a client of the handshake era does."""
    named = {
        "accept": ACCEPT,
        "mcp-protocol-version": HANDSHAKE,
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    return await http.post("/mcp", json=body, headers=named)
