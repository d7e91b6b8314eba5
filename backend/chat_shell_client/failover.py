"""Calls that a replica of chat_shell refused because it shuts down reach another one, which takes them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Self, cast

from backend.chat_shell_client.ports.chat_shell import ChatShell
from backend.chat_shell_client.refusals import ReplicaDraining
from shared.errors import BallastError, ChatShellUnavailable
from shared.models.events import ExecutionEvent, ModelCard
from shared.models.execution import ExecutionRequest
from shared.models.served_tools import OfferedTools
from shared.models.single_tools import SingleToolCall, SingleToolResult

PAUSE_SECONDS = 0.25
TRIES = 12
"""Enough to make a connection to another replica; a replica that goes is no endpoint any more when it refuses calls."""


Batch = tuple[ExecutionEvent, ...]


class RetriedStream:
    """The events of a turn: another stream is opened where one fails before its first event.

    `open_stream` is given None, and then each failure; where it returns no stream, the failure is raised. Behind the
    first event the events come from their stream itself.
    """

    def __init__(self, open_stream: Callable[[BallastError | None], Awaitable[AsyncIterator[Batch] | None]]) -> None:
        self._open_stream = open_stream
        self._stream: AsyncIterator[Batch] | None = None
        self._has_begun = False

    def __aiter__(self) -> Self:
        """Iterate over batches of events."""
        return self

    def __anext__(self) -> Awaitable[Batch]:
        """Return the next events."""
        return self._stream.__anext__() if self._stream is not None and self._has_begun else self._first()

    async def aclose(self) -> None:
        """Cancel the turn."""
        if self._stream is not None:
            await cast(AsyncGenerator[Batch], self._stream).aclose()

    async def _first(self) -> Batch:
        self._stream = await self._open_stream(None)
        while self._stream is not None:
            try:
                first = await anext(self._stream)
            except BallastError as error:
                self._stream = await self._open_stream(error)
                if self._stream is None:
                    raise
            else:
                self._has_begun = True
                return first
        raise StopAsyncIteration


class FailoverChatShell:
    """Implements `ChatShell` over a client that raises `ReplicaDraining` for a call of which nothing has run.

    A replica that goes refuses calls from one moment to the next, and those who send them hear of it a little later.
    """

    def __init__(self, client: ChatShell, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._client = client
        self._sleep = sleep

    def execute(self, request: ExecutionRequest) -> RetriedStream:
        """Run a turn on the first replica that takes it; closing the iterator cancels it.

        Raises:
            ChatShellUnavailable: no replica takes it, or the connection was lost.
            DeadlineExceeded: the request's deadline passed.
        """
        left = TRIES

        async def open_stream(failure: BallastError | None) -> AsyncIterator[Batch] | None:
            nonlocal left
            if isinstance(failure, ReplicaDraining):
                left -= 1
                await self._wait_after(failure, left)
            elif failure is not None:
                return None
            return self._client.execute(request)

        return RetriedStream(open_stream)

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
