"""Bodies of documents: they are large, and storing them takes so long that clients leave."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request

Result = TypeVar("Result")


async def whole_body(request: Request) -> bytearray:
    """Return the body, held once in memory; joining its parts would hold it twice."""
    body = bytearray()
    async for part in request.stream():
        body += part
    return body


async def while_client_waits(request: Request, work: Coroutine[None, None, Result]) -> Result:
    """Run work whose request was read to its end; it is cancelled when the client leaves.

    Raises:
        ClientDisconnect: the client has left.
    """
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_client_leaves(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.wait((working, leaving))


async def _client_leaves(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        continue
