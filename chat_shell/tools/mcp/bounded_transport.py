"""HTTP whose answers are read up to a bound."""

from collections.abc import AsyncIterator

import httpx2

from chat_shell.tools.mcp.messages import MessageTooLarge, failure_of
from chat_shell.tools.ports.tool_servers import CallFailure, ToolServerFailed


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Sends requests over connections that others use, too, and reads no more than `max_bytes` of each answer.

    The first failure is kept, because the library above answers it with a message of its own.
    """

    def __init__(self, connections: httpx2.AsyncBaseTransport, max_bytes: int) -> None:
        self._connections = connections
        self._max_bytes = max_bytes
        self.failure: CallFailure | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        Raises:
            MessageTooLarge: the answer announces more than may be read, or is compressed.
            httpx2.HTTPError: there is no answer.
        """
        try:
            response = await self._connections.handle_async_request(request)
        except httpx2.HTTPError as error:
            self.note(error)
            raise
        announced = response.headers.get("content-length", "0")
        if response.headers.get("content-encoding", "identity") != "identity" or (
            announced.isdecimal() and int(announced) > self._max_bytes
        ):
            await response.aclose()
            raise self.note(MessageTooLarge("the answer is too large"))
        response.stream = _BoundedBody(self, response.stream, self._max_bytes)
        return response

    async def aclose(self) -> None:
        """Leave the connections open for others."""

    def note(self, error: httpx2.HTTPError | MessageTooLarge) -> Exception:
        """Keep what an error says of the server, where nothing went wrong before; return the error."""
        self.failure = self.failure or failure_of(error)
        return error

    def raise_failure(self) -> None:
        """Raise the failure where there was one.

        Raises:
            ToolServerFailed: there was one.
        """
        if self.failure is not None:
            raise ToolServerFailed(self.failure)


class _BoundedBody(httpx2.AsyncByteStream):
    def __init__(self, transport: BoundedTransport, body: httpx2.SyncByteStream | httpx2.AsyncByteStream, most: int):
        self._transport = transport
        self._body = body
        self._left_bytes = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if not isinstance(self._body, httpx2.AsyncByteStream):
            raise self._transport.note(MessageTooLarge("the answer cannot be read in pieces"))
        try:
            async for piece in self._body:
                self._left_bytes -= len(piece)
                if self._left_bytes < 0:
                    raise MessageTooLarge("the answer is too large")
                yield piece
        except (httpx2.HTTPError, MessageTooLarge) as error:
            raise self._transport.note(error) from error

    async def aclose(self) -> None:
        if isinstance(self._body, httpx2.AsyncByteStream):
            await self._body.aclose()
