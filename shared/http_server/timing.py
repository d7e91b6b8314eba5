"""Limits on how slowly an HTTP request may arrive, which uvicorn does not have: the clock, and the refusal.

A connection that sends a byte now and then would otherwise be kept for ever, and thousands of them would leave no
room for others (the attack is known as Slowloris).
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType

import orjson


@dataclass(frozen=True)
class ReadLimits:
    """The limits of one request, and how many connections may wait for one, or for the end of its headers.

    A body may take `seconds`, and more the longer it is: it is slow when it comes with less than `bytes_a_second`.
    Of one that is answered before it has come, `unread_bytes` more are taken, so that its client comes to read the
    answer. Behind a request that is not answered yet, `waiting_requests` of the same connection are taken; what comes
    then is not read, and the connection closed behind the last answer.

    Between two requests a connection may be idle for `idle_seconds`: longer than proxies and clients keep one (60
    seconds and less), because a request that meets a connection as it closes is lost, and not all may be sent again.
    """

    seconds: float = 30.0
    bytes_a_second: int = 16_384
    head_bytes: int = 65_536
    unfinished_heads: int = 1024
    unread_bytes: int = 2**30
    waiting_requests: int = 64
    idle_seconds: int = 75


class RequestClock:
    """Calls `on_late` when a request takes too long to arrive; one clock serves the requests of a connection in turn.

    While `is_paused`, this server does not read: then the wait is not the client's, and counts for nothing.
    """

    def __init__(
        self,
        limits: ReadLimits,
        loop: asyncio.AbstractEventLoop,
        on_late: Callable[[], None],
        is_paused: Callable[[], bool],
    ) -> None:
        self._limits = limits
        self._loop = loop
        self._on_late = on_late
        self._is_paused = is_paused
        self._timer: asyncio.TimerHandle | None = None
        self._began_at = 0.0
        self._body_bytes = 0

    @property
    def is_running(self) -> bool:
        """Whether something of a request is waited for."""
        return self._timer is not None

    def expect_head(self) -> None:
        """Begin to wait for the headers of a request."""
        self._start(self._on_late)

    def expect_body(self) -> None:
        """Begin to wait for the body of a request."""
        self._body_bytes = 0
        self._start(self._check_body)

    def note_body(self, length: int) -> None:
        """Note so many bytes of a body."""
        self._body_bytes += length

    def stop(self) -> None:
        """Wait for nothing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        """Wait for nothing any more, and let go of who was to be called."""
        self.stop()
        self._on_late, self._is_paused = _call_nobody, bool

    def _start(self, at_end: Callable[[], None]) -> None:
        self.stop()
        self._began_at = self._loop.time()
        self._timer = self._loop.call_later(self._limits.seconds, at_end)

    def _check_body(self) -> None:
        allowed = self._limits.seconds + self._body_bytes / self._limits.bytes_a_second
        left = self._limits.seconds if self._is_paused() else self._began_at + allowed - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._check_body)
        else:
            self._on_late()


def _call_nobody() -> None:
    """Do nothing: the connection is gone."""


def raw_refusal(status: HTTPStatus, message: str, code: str, more: Mapping[str, str] = MappingProxyType({})) -> bytes:
    """Write a whole answer in the form of all errors, for a connection that is closed behind it.

    `more` are further headers of it.
    """
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    body = orjson.dumps({"error": error})
    headers = {"content-type": "application/json", "content-length": len(body), "connection": "close", **more}
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def late_refusal(more: Mapping[str, str] = MappingProxyType({})) -> bytes:
    """Write the answer to a request that came too slowly; `more` are further headers of it."""
    return raw_refusal(HTTPStatus.REQUEST_TIMEOUT, "The request did not arrive in time.", "request_timeout", more)
