"""Limits of rates, and what is counted of their refusals."""

import httpx2

from backend.identity.domain import RateLimits

NONE = RateLimits()


class CountedRefusals:
    """Implements `RateObserver`."""

    def __init__(self) -> None:
        self.refused = 0
        self.uncounted = 0

    def turns_refused(self, turns: int) -> None:
        self.refused += turns

    def turns_uncounted(self, turns: int) -> None:
        self.uncounted += turns


async def ask(client: httpx2.AsyncClient) -> httpx2.Response:
    return await client.post("/v1/responses", json={"input": "Hi"})
