"""How long a caller may take to send a request: the server's own protocol has no such limit."""

import asyncio
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from shared.certificates import HAS_CERTIFICATE
from shared.request_timing import ReadLimits, RequestClock, begin_to_idle, late_refusal, raw_refusal


class TimedRequests(HttpToolsProtocol):
    """One connection, whose requests must arrive in time; what is late is answered 408, and the connection closed."""

    def __init__(self, limits: ReadLimits, **settings: Any) -> None:
        super().__init__(**settings)
        self._limits = limits
        self._clock = RequestClock(limits, self.loop, self._refuse_late, lambda: self.flow.read_paused)
        self._head_bytes: int | None = 0
        self._has_begun = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Expect the headers of the first request, and note whether the client has shown a certificate."""
        super().connection_made(transport)
        # there is one only where it was checked against the authority
        if transport.get_extra_info("peercert"):
            self.app_state = {**self.app_state, HAS_CERTIFICATE: True}
        self._clock.expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._clock.stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; headers without end are refused."""
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes is not None and self._head_bytes > self._limits.head_bytes:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            message = f"The headers are longer than {self._limits.head_bytes} bytes."
            self._refuse(raw_refusal(status, message, "invalid_request"))
        begin_to_idle(self, self._latest, self._clock)

    @property
    def _latest(self) -> RequestResponseCycle | None:
        """The latest exchange; there is none before the first request."""
        return cast(RequestResponseCycle | None, self.cycle)

    def on_message_begin(self) -> None:
        """Begin to read a request. Behind an unanswered one it may take its time: the answer would end with it."""
        super().on_message_begin()
        self._has_begun = True
        if self._head_bytes is None:
            self._head_bytes = 0
            if not self._is_answering():
                self._clock.expect_head()

    def on_headers_complete(self) -> None:
        """Expect the body."""
        self._has_begun = False
        self._head_bytes = None
        self._clock.expect_body()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._clock.note_body(len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the wait: the request is whole."""
        self._clock.stop()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Begin the next request that has come already, or wait for the rest of its headers, or for another."""
        super().on_response_complete()
        if self.timeout_keep_alive_task is not None and self._head_bytes is not None:
            self._clock.expect_head()

    def _is_answering(self) -> bool:
        return self._latest is not None and not self._latest.response_complete

    def _refuse_late(self) -> None:
        self._refuse(late_refusal())

    def _refuse(self, refusal: bytes) -> None:
        self._clock.stop()
        if self.transport.is_closing():
            return
        cycle = self._latest
        # While an answer to an earlier request of this connection runs, or where one has begun, none can be put in.
        is_waiting = self._has_begun and not self._is_answering()
        is_unanswered = self._head_bytes is None and cycle is not None and not cycle.response_started
        if is_waiting or is_unanswered:
            self.transport.write(refusal)
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()
