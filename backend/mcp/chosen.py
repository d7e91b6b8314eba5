"""Loading the library of the Model Context Protocol when the first request needs it: it takes a second and 30 MB."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from starlette.types import Receive, Scope, Send

from backend.identity.domain import Caller
from backend.mcp.services.lookups import Lookups

MessageAnswer = Callable[[Scope, Receive, Send], Awaitable[None]]
"""Answers one HTTP request."""

Opened = Callable[[Lookups, Caller, str], MessageAnswer]


class McpLibrary:
    """The library, which is imported once, in a thread, beside other requests."""

    def __init__(self) -> None:
        self._opened: Opened | None = None

    async def answer_of(self, lookups: Lookups, caller: Caller, request_id: str) -> MessageAnswer:
        """Return what answers a request of this caller."""
        if self._opened is None:
            self._opened = await asyncio.to_thread(_load)
        return self._opened(lookups, caller, request_id)


def _load() -> Opened:
    from backend.mcp.server.server import answer_message
    from backend.mcp.server.tools import CallerTools

    def open_for(lookups: Lookups, caller: Caller, request_id: str) -> MessageAnswer:
        return partial(answer_message, CallerTools(lookups, caller, request_id))

    return open_for
