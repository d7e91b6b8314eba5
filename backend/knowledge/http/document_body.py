"""Bodies of documents: they are large, and storing them takes so long that clients leave."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request

from backend.foundation.services.supervision import beside

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
    async with beside(work) as working, beside(_client_leaves(request)) as leaving:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()


async def _client_leaves(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        continue
