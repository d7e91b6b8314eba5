"""One HTTP/1.1 connection of the fake, written down to the socket so that faults and closings are exact."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import httptools

from tests.fakes.model_server.script import ConnectionRecord, RecordedRequest

Handler = Callable[[RecordedRequest, "Connection"], Awaitable[None]]


class Connection(asyncio.Protocol):
    """Parse requests, hand each to the handler, and write what it says."""

    def __init__(self, number: int, handler: Handler, on_closed: Callable[[], None]) -> None:
        self.number = number
        self.opened_at = time.monotonic()
        self.closed_at: float | None = None
        self.bytes_sent = 0
        self._handler = handler
        self._on_closed = on_closed
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self.on_message_begin()

    @property
    def record(self) -> ConnectionRecord:
        """The connection as a value."""
        return ConnectionRecord(number=self.number, opened_at=self.opened_at, closed_at=self.closed_at)

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The running handler."""
        return self._task

    async def write(self, content: bytes) -> None:
        """Write bytes and wait while the client does not read."""
        if self._transport is None or self.closed_at is not None:
            raise ConnectionResetError("the client has left")
        self._transport.write(content)
        self.bytes_sent += len(content)
        await self._may_write.wait()

    async def start(self, status: int, headers: dict[str, str]) -> None:
        """Send the head of an answer."""
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{k}: {v}" for k, v in headers.items())]
        await self.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def send_chunk(self, content: bytes) -> None:
        """Send one piece of a chunked body."""
        await self.write(b"%x\r\n%b\r\n" % (len(content), content))

    async def send_whole(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        """Send an answer whose length is known."""
        head = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        await self.start(status, head | (headers or {}))
        await self.write(body)

    def close(self) -> None:
        """Close the connection after what was written; an unfinished body stays unfinished."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Reset the connection."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort()

    def eof_received(self) -> bool:
        self._close()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._close()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body = bytearray()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        request = RecordedRequest(
            method=self._parser.get_method().decode(),
            path=self._url.decode("latin-1"),
            headers=self._headers,
            body=bytes(self._body),
            connection=self.number,
            received_at=time.monotonic(),
        )
        self._task = asyncio.get_running_loop().create_task(self._handle(request))

    async def _handle(self, request: RecordedRequest) -> None:
        try:
            await self._handler(request, self)
        except ConnectionResetError:
            self.abort()

    def _close(self) -> None:
        if self.closed_at is None:
            self.closed_at = time.monotonic()
            self._may_write.set()
            self._on_closed()
