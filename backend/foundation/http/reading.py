"""How long a client may take to send a request: the server's own protocol has no such limit.

A connection that sends a byte now and then would otherwise be kept for ever, and thousands of them would leave no
room for others (the attack is known as Slowloris).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle


@dataclass(frozen=True)
class ReadLimits:
    """The limits of one request, and how many connections may wait for the end of their headers.

    A body may take `seconds`, and more the longer it is: it is slow when it comes with less than `bytes_a_second`.
    """

    seconds: float = 30.0
    bytes_a_second: int = 16_384
    head_bytes: int = 65_536
    unfinished_heads: int = 1024


class _HeadTooLarge(Exception):
    """The headers are longer than allowed."""


class UnfinishedHeads:
    """The connections of which no whole request has come yet, the oldest first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: dict[TimedProtocol, None] = {}

    def add(self, protocol: "TimedProtocol") -> None:
        """Note a connection; where there are too many, the oldest is closed."""
        self._waiting[protocol] = None
        if len(self._waiting) > self._limit:
            next(iter(self._waiting)).refuse_late()

    def discard(self, protocol: "TimedProtocol") -> None:
        """Forget a connection."""
        self._waiting.pop(protocol, None)


class TimedProtocol(HttpToolsProtocol):
    """One connection, whose requests must arrive in time; what is late is answered 408, and the connection closed."""

    def __init__(self, limits: ReadLimits, heads: UnfinishedHeads, **settings: Any) -> None:
        super().__init__(**settings)
        self._limits = limits
        self._heads = heads
        self._timer: asyncio.TimerHandle | None = None
        self._began_at = 0.0
        self._head_bytes = 0
        self._body_bytes = 0
        self._in_head = False
        self._has_begun = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Expect the headers of the first request."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; headers without end are refused."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > self._limits.head_bytes:
            self.send_400_response("")

    def on_message_begin(self) -> None:
        """Begin to read a request."""
        super().on_message_begin()
        if not self._in_head:
            self._expect_head()
        self._has_begun = True

    def on_headers_complete(self) -> None:
        """Expect the body."""
        if sum(len(name) + len(value) for name, value in self.headers) + len(self.url) > self._limits.head_bytes:
            self._head_bytes = self._limits.head_bytes + 1
            raise _HeadTooLarge
        self._in_head = False
        self._heads.discard(self)
        self._body_bytes = 0
        self._start_timer(self._limits.seconds, self._check_body)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the wait: the request is whole."""
        self._stop_timer()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, or whose headers are too long, in the form of all errors of this API."""
        is_long = self._head_bytes > self._limits.head_bytes
        refusal = f"The headers are longer than {self._limits.head_bytes} bytes." if is_long else msg
        self._refuse(431 if is_long else 400, refusal, "invalid_request")

    def refuse_late(self) -> None:
        """Answer that a request came too slowly, where it began and no answer did, and close the connection."""
        self._refuse(408, "The request did not arrive in time.", "request_timeout")

    def _expect_head(self) -> None:
        self._in_head = True
        self._has_begun = False
        self._head_bytes = 0
        self._heads.add(self)
        self._start_timer(self._limits.seconds, self.refuse_late)

    def _check_body(self) -> None:
        allowed = self._limits.seconds + self._body_bytes / self._limits.bytes_a_second
        left = self._began_at + allowed - self.loop.time()
        if self.flow.read_paused:
            left = self._limits.seconds  # the wait is for this server
        if left > 0:
            self._timer = self.loop.call_later(left, self._check_body)
        else:
            self.refuse_late()

    def _start_timer(self, seconds: float, at_end: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._began_at = self.loop.time()
        self._timer = self.loop.call_later(seconds, at_end)

    def _stop_timer(self) -> None:
        self._heads.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int, message: str, code: str) -> None:
        self._stop_timer()
        if self.transport.is_closing():
            return
        cycle = cast(RequestResponseCycle | None, self.cycle)  # there is none before the first request
        # While an answer to an earlier request of this connection runs, or where one has begun, none can be put in.
        is_waiting = self._has_begun and self._in_head and (cycle is None or cycle.response_complete)
        is_unanswered = not self._in_head and cycle is not None and not cycle.response_started
        if is_waiting or is_unanswered:
            self.transport.write(_refusal(status, message, code))
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()


def _refusal(status: int, message: str, code: str) -> bytes:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    body = orjson.dumps({"error": error})
    phrase = {400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large"}[status]
    head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{head}connection: close\r\n\r\n".encode() + body
