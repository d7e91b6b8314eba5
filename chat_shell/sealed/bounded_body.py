"""Read HTTP response bodies of limited length."""

import aiohttp

_CHUNK_BYTES = 65_536


async def read_at_most(response: aiohttp.ClientResponse, limit_bytes: int) -> bytes | None:
    """Return the body, or None as soon as it is longer than the limit: the rest is not read."""
    body = bytearray()
    async for received in response.content.iter_chunked(_CHUNK_BYTES):
        body += received
        if len(body) > limit_bytes:
            return None
    return bytes(body)
