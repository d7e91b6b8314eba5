"""How long a client may take to send a request: the server's own protocol has no such limit."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from backend.foundation.http.cross_origin import marks_for
from shared.certificates import HAS_CERTIFICATE
from shared.request_timing import ReadLimits, RequestClock, late_refusal, raw_refusal

CLIENT_LEFT = "client_left"
"""Where the state of a request holds an event that is set when its client has left, be anything of it read or not."""


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


@dataclass(frozen=True)
class ConnectionRules:
    """What holds for all connections: their limits, who waits, and which origins' scripts may read what is refused."""

    limits: ReadLimits
    heads: UnfinishedHeads
    allows: Callable[[str], bool]


class TimedProtocol(HttpToolsProtocol):
    """One connection, whose requests must arrive in time; what is late is answered 408, and the connection closed."""

    def __init__(self, rules: ConnectionRules, **settings: Any) -> None:
        super().__init__(**settings)
        self._limits = limits = rules.limits
        self._heads = rules.heads
        self._allows = rules.allows
        self._clock = RequestClock(limits, self.loop, self.refuse_late, lambda: self.flow.read_paused)
        self._head_bytes = 0
        self._in_head = False
        self._has_begun = False
        self._unanswered: deque[RequestResponseCycle] = deque()
        self._client_left = asyncio.Event()
        self._unread_bytes = 0
        self.app_state = {**self.app_state, CLIENT_LEFT: self._client_left}

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Expect the headers of the first request, and note whether the client has shown a certificate."""
        super().connection_made(transport)
        # there is one only where it was checked against the authority
        if transport.get_extra_info("peercert"):
            self.app_state = {**self.app_state, HAS_CERTIFICATE: True}
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; all of its requests are told that the client has left, and not the last one alone."""
        self._stop_timer()
        self._client_left.set()
        for cycle in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()
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
        self._unread_bytes = 0
        self._heads.discard(self)
        self._clock.expect_body()
        super().on_headers_complete()
        while self._unanswered and self._unanswered[0].response_complete:
            self._unanswered.popleft()
        self._unanswered.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body; one that is answered already is discarded, but not for ever."""
        self._clock.note_body(len(body))
        super().on_body(body)
        if self.cycle.response_complete:
            self._unread_bytes += len(body)
            if self._unread_bytes > self._limits.unread_bytes:
                self.transport.close()

    def on_message_complete(self) -> None:
        """End the wait: the request is whole."""
        self._stop_timer()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, or whose headers are too long, in the form of all errors of this API."""
        is_long = self._head_bytes > self._limits.head_bytes
        refusal = f"The headers are longer than {self._limits.head_bytes} bytes." if is_long else msg
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if is_long else HTTPStatus.BAD_REQUEST
        self._refuse(raw_refusal(status, refusal, "invalid_request", self._marks()))

    def refuse_late(self) -> None:
        """Answer that a request came too slowly, where it began and no answer did, and close the connection."""
        self._refuse(late_refusal(self._marks()))

    def _marks(self) -> Mapping[str, str]:
        """Return what the browser of a script wants to see in an answer, by the headers that have come so far."""
        sent = cast(list[tuple[bytes, bytes]] | None, self.headers) or ()  # there are none before the first request
        origin = next((value.decode("latin-1") for name, value in sent if name == b"origin"), "")
        return marks_for(origin) if origin and self._allows(origin) else {}

    def _expect_head(self) -> None:
        self._in_head = True
        self._has_begun = False
        self._head_bytes = 0
        self._heads.add(self)
        self._clock.expect_head()

    def _stop_timer(self) -> None:
        self._heads.discard(self)
        self._clock.stop()

    def _refuse(self, refusal: bytes) -> None:
        self._stop_timer()
        if self.transport.is_closing():
            return
        cycle = cast(RequestResponseCycle | None, self.cycle)  # there is none before the first request
        # While an answer to an earlier request of this connection runs, or where one has begun, none can be put in.
        is_waiting = self._has_begun and self._in_head and (cycle is None or cycle.response_complete)
        is_unanswered = not self._in_head and cycle is not None and not cycle.response_started
        if is_waiting or is_unanswered:
            self.transport.write(refusal)
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        self._client_left.set()
        self.transport.close()
