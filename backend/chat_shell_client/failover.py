"""Calls that a replica of chat_shell refused because it shuts down reach another one, which takes them."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import cast

from backend.chat_shell_client.ports.chat_shell import ChatShell
from backend.chat_shell_client.refusals import ReplicaDraining
from shared.errors import ChatShellUnavailable
from shared.models.events import ExecutionEvent, ModelCard
from shared.models.execution import ExecutionRequest
from shared.models.served_tools import OfferedTools
from shared.models.single_tools import SingleToolCall, SingleToolResult

PAUSE_SECONDS = 0.25
TRIES = 12
"""Enough to make a connection to another replica; a replica that goes is no endpoint any more when it refuses calls."""


class FailoverChatShell:
    """Implements `ChatShell` over a client that raises `ReplicaDraining` for a call of which nothing has run.

    A replica that goes refuses calls from one moment to the next, and those who send them hear of it a little later.
    """

    def __init__(self, client: ChatShell, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._client = client
        self._sleep = sleep

    async def execute(self, request: ExecutionRequest) -> AsyncGenerator[tuple[ExecutionEvent, ...]]:
        """Run a turn on the first replica that takes it; closing the iterator cancels it.

        Raises:
            ChatShellUnavailable: no replica takes it, or the connection was lost.
            DeadlineExceeded: the request's deadline passed.
        """
        for left in reversed(range(TRIES)):
            try:
                stream = cast(AsyncGenerator[tuple[ExecutionEvent, ...]], self._client.execute(request))
                async with aclosing(stream) as batches:
                    async for batch in batches:
                        yield batch
            except ReplicaDraining as refusal:
                await self._wait_after(refusal, left)
            else:
                return

    async def models(self) -> tuple[ModelCard, ...]:
        """Return the offered models, of which a replica tells until its end."""
        return await self._client.models()

    async def tools(self) -> OfferedTools:
        """Return the offered tools, of which a replica tells until its end."""
        return await self._client.tools()

    async def run_tool(self, call: SingleToolCall) -> SingleToolResult:
        """Run a tool on the first replica that takes the call.

        Raises:
            ChatShellUnavailable: no replica takes it, or the connection was lost.
            DeadlineExceeded: the turn's deadline passed.
        """
        left = TRIES
        while True:
            left -= 1
            try:
                return await self._client.run_tool(call)
            except ReplicaDraining as refusal:
                await self._wait_after(refusal, left)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _wait_after(self, refusal: ReplicaDraining, left: int) -> None:
        if not left:
            raise ChatShellUnavailable(refusal.message) from refusal
        await self._sleep(PAUSE_SECONDS)
