"""Limits of rates, and a request that they count."""

import httpx2

from backend.identity.domain import RateLimits

NONE = RateLimits()


async def ask(client: httpx2.AsyncClient) -> httpx2.Response:
    return await client.post("/v1/responses", json={"input": "Hi"})
