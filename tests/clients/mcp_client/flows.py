"""Flows of the official client of the Model Context Protocol."""

import contextlib

import httpx2
from flow_kit import API_KEY, CODE_WORD, KNOWLEDGE_BASE_ID, SERVER_URL, check, flow, refused, run
from mcp import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client

ADDRESS = f"{SERVER_URL}/mcp"


@contextlib.asynccontextmanager
async def connected(key: str = API_KEY):
    """Open a session as the protocol asks."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http,
        streamable_http_client(ADDRESS, http_client=http) as (read, write, *_),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


def texts(result) -> str:
    """Join the text of a tool's result."""
    return "".join(part.text for part in result.content if part.type == "text")


@flow("plain", "initialize, ping, list_tools")
async def tools():
    """The four tools, described."""
    async with connected() as session:
        listed = (await session.list_tools()).tools
    names = {tool.name for tool in listed}
    wanted = {"search_knowledge", "list_documents", "read_document", "list_knowledge_bases"}
    check(wanted <= names and all(tool.description for tool in listed), names)


@flow("plain", "Client by an HTTP client of one's own")
async def high_level():
    """The client's shorter way."""
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {API_KEY}"}, timeout=60)
    async with http, Client(streamable_http_client(ADDRESS, http_client=http)) as client:
        check((await client.list_tools()).tools)


@flow("knowledge", "search_knowledge, list_knowledge_bases, list_documents, read_document")
async def knowledge():
    """From the list of bases to the text."""
    async with connected() as session:
        bases = texts(await session.call_tool("list_knowledge_bases", {}))
        check(KNOWLEDGE_BASE_ID in bases, bases)
        given = {"query": "code word", "knowledge_base_ids": [KNOWLEDGE_BASE_ID], "max_results": 3}
        found = await session.call_tool("search_knowledge", given)
        check(CODE_WORD in texts(found) and "handbook.md" in texts(found), found)
        check(found.structured_content, found)
        documents = texts(await session.call_tool("list_documents", {"knowledge_base_id": KNOWLEDGE_BASE_ID}))
        check("handbook.md" in documents, documents)


@flow("knowledge", "resources")
async def resources():
    """Documents as resources."""
    async with connected() as session:
        listed = (await session.list_resources()).resources
        check(listed, listed)
        read = await session.read_resource(listed[0].uri)
    check(CODE_WORD in read.contents[0].text, read)


@flow("errors", "wrong key")
async def wrong_key():
    """A key that is none."""
    with refused("error response"):  # the client hides the 401 and its message
        async with connected("sk-wrong"):
            pass


@flow("errors", "unknown tool, wrong argument, unknown base")
async def wrong_calls():
    """Each says what is wrong."""
    async with connected() as session:
        result = await session.call_tool("search_knowledge", {"query": 7})
        check(result.is_error and "query" in texts(result), result)
        result = await session.call_tool("search_knowledge", {"query": "x", "knowledge_base_ids": ["kb_no"]})
        check(result.is_error and "knowledge_base_ids[0]" in texts(result), result)


run()
