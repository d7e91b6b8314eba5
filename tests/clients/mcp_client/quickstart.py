"""The official client of the Model Context Protocol: what tools there are, and a search."""

import asyncio
import os

import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

address = os.environ["OPENAI_BASE_URL"].removesuffix("/v1") + "/mcp"
headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}


async def main() -> None:
    """List the tools and search."""
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        streamable_http_client(address, http_client=http) as (read, write, *_),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        for tool in (await session.list_tools()).tools:
            print(tool.name, "-", tool.description)
        found = await session.call_tool("search_knowledge", {"query": "code word of the handbook"})
        for part in found.content:
            print(part.text)


asyncio.run(main())
