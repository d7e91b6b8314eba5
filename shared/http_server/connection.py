"""HTTP connections with a limit on how long a request may take to arrive, which uvicorn does not have."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from http import HTTPStatus
from time import monotonic
from typing import Any, cast

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from shared.certificates import HAS_CERTIFICATE
from shared.http_server.timing import ReadLimits, RequestClock, late_refusal, raw_refusal

CLIENT_LEFT = "client_left"
"""Where the state of a request holds an event that is set when its client has left, be anything of it read or not."""


DISCARDED_BYTES_A_SECOND = 67_108_864
LONGEST_PAUSE_SECONDS = 5.0
PIECE_BYTES = 256
"""What a piece of a body costs, however short it is."""


class _HeadTooLarge(Exception):
    """The headers are longer than allowed."""


class _TooManyWaiting(Exception):
    """More requests than allowed wait behind the one of this connection that is answered now."""


class DiscardPace:
    """How fast bytes are taken in that nobody reads, such as the body behind a refusal: so many a second in all.

    What clients send as fast as they can would otherwise leave the event loop no time for anything else.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._due = 0.0

    def pause_seconds(self, cost_bytes: int) -> float:
        """Return for how long a connection is not read that has brought so much for nothing.

        Once they stop, whoever else sends such bytes waits no longer for what many connections have brought.
        """
        now = self._now()
        due = max(self._due, now) + cost_bytes / DISCARDED_BYTES_A_SECOND
        self._due = min(due, now + LONGEST_PAUSE_SECONDS)
        return self._due - now


class UnfinishedHeads:
    """The connections of which no whole request has come yet, or no next one, the oldest first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: dict[TimedProtocol, None] = {}

    def add(self, protocol: "TimedProtocol") -> None:
        """Note a connection as the newest; where there are too many, the oldest is closed."""
        self.discard(protocol)
        self._waiting[protocol] = None
        if len(self._waiting) > self._limit:
            next(iter(self._waiting)).refuse_late()

    def discard(self, protocol: "TimedProtocol") -> None:
        """Forget a connection."""
        self._waiting.pop(protocol, None)


DEFAULT_LIMITS = ReadLimits()


class ConnectionRules:
    """What holds for all connections: their limits, who waits, and how fast is taken in what nobody reads.

    `marks_for` tells the headers of a refusal that the browser of a script wants to see, by the origin of the script.
    """

    def __init__(
        self,
        limits: ReadLimits = DEFAULT_LIMITS,
        marks_for: Callable[[str], Mapping[str, str]] = lambda _: {},
        discards: DiscardPace | None = None,
    ) -> None:
        self.limits = limits
        self.heads = UnfinishedHeads(limits.unfinished_heads)
        self.marks_for = marks_for
        self.discards = discards or DiscardPace(monotonic)


class JoinedWrites:
    """A transport that hands on what is written in one step of the event loop as one piece: each costs a system call.

    What is written on and on without a pause is handed on as it fills a piece, so that the transport can hold it up.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []
        self._length = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write behind what was written before."""
        if not self._pieces:
            self._loop.call_soon(self._hand_on)
        self._pieces.append(data)
        self._length += len(data)
        if self._length >= HIGH_WATER_LIMIT:
            self._hand_on()

    def close(self) -> None:
        """Close the transport behind all that was written."""
        self._hand_on()
        self._transport.close()

    def _hand_on(self) -> None:
        if self._pieces:
            joined, self._pieces, self._length = b"".join(self._pieces), [], 0
            self._transport.write(joined)


class TimedProtocol(HttpToolsProtocol):
    """One connection, whose requests must arrive in time; what is late is answered 408, and the connection closed."""

    def __init__(self, rules: ConnectionRules, **settings: Any) -> None:
        super().__init__(**settings)
        self._limits = limits = rules.limits
        self._heads = rules.heads
        self._marks_for = rules.marks_for
        self._clock = RequestClock(limits, self.loop, self.refuse_late, lambda: self.flow.read_paused)
        self._head_bytes = 0
        self._in_head = False
        self._has_begun = False
        self._unanswered: deque[RequestResponseCycle] = deque()
        self._client_left = asyncio.Event()
        self._discards = rules.discards
        self._in_body = self._is_deaf = False
        self._kept_bytes = self._pieces = self._unread_bytes = 0
        self.app_state = {**self.app_state, CLIENT_LEFT: self._client_left}

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Expect the headers of the first request, and note whether the client has shown a certificate."""
        super().connection_made(cast(asyncio.Transport, JoinedWrites(transport, self.loop)))
        # there is one only where it was checked against the authority
        if transport.get_extra_info("peercert"):
            self.app_state = {**self.app_state, HAS_CERTIFICATE: True}
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; all of its requests are told that the client has left, and not the last one alone."""
        self._heads.discard(self)
        self._clock.close()
        self._client_left.set()
        for cycle in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; headers without end are refused."""
        if self._in_head:
            self._head_bytes += len(data)
        self._kept_bytes = self._pieces = 0
        was_in_body = self._in_body
        super().data_received(data)
        if was_in_body and self._in_body:
            self._discard(len(data) - self._kept_bytes, len(data))
        if self._in_head and self._head_bytes > self._limits.head_bytes:
            self.send_400_response("")
        if self.transport.get_protocol() is self:
            self._begin_to_idle()

    def _begin_to_idle(self) -> None:
        """Wait for another request where nothing of one is expected.

        uvicorn ends this wait with whatever comes. That may have been the body of the latest request, which was
        answered before, or no more than a blank line.
        """
        is_over = self._latest is not None and self._latest.response_complete and not self._clock.is_running
        if is_over and self.timeout_keep_alive_task is None and not self.transport.is_closing():
            handler = self.timeout_keep_alive_handler
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, handler)
            self._heads.add(self)

    @property
    def _becomes_socket(self) -> bool:
        """Whether the request opens a WebSocket, whose protocol then takes the connection over."""
        parser = cast(Any, self.parser)
        return bool(parser.should_upgrade()) and self._should_upgrade()

    def _should_upgrade(self) -> bool:
        """Take no connection over on which an answer is due."""
        return super()._should_upgrade() and (self._latest is None or self._latest.response_complete)

    @property
    def _latest(self) -> RequestResponseCycle | None:
        """The latest exchange; there is none before the first request."""
        return cast(RequestResponseCycle | None, self.cycle)

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
        if len(self.pipeline) >= self._limits.waiting_requests:
            self._is_deaf = True
            self._stop_timer()
            self.cycle.keep_alive = False
            raise _TooManyWaiting
        self._in_head, self._in_body = False, not self._becomes_socket
        self._unread_bytes = 0
        if self._becomes_socket:
            self._stop_timer()
            super().on_headers_complete()
            return
        self._heads.discard(self)
        self._clock.expect_body()
        super().on_headers_complete()
        while self._unanswered and self._unanswered[0].response_complete:
            self._unanswered.popleft()
        self._unanswered.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body; where the request is answered already, it is discarded."""
        self._clock.note_body(len(body))
        super().on_body(body)
        self._pieces += 1
        if not self.cycle.response_complete:
            self._kept_bytes += len(body)

    def _discard(self, lost_bytes: int, arrived_bytes: int) -> None:
        """Read on after a pause where most of what has arrived is lost, and not for ever."""
        self._unread_bytes += lost_bytes
        if self._unread_bytes > self._limits.unread_bytes:
            self.transport.close()
        elif 2 * lost_bytes > arrived_bytes:
            self.flow.pause_reading()
            cost_bytes = lost_bytes + PIECE_BYTES * self._pieces
            self.loop.call_later(self._discards.pause_seconds(cost_bytes), self._read_on)

    def _read_on(self) -> None:
        """End a pause, unless uvicorn has begun one of its own."""
        is_full = not self.cycle.response_complete and len(self.cycle.body) > HIGH_WATER_LIMIT
        if not self.transport.is_closing() and not self.pipeline and not is_full:
            self.flow.resume_reading()

    def on_message_complete(self) -> None:
        """End the wait: the request is whole. Read on behind an unanswered one: else nobody sees the client leave."""
        self._in_body = False
        self._stop_timer()
        super().on_message_complete()
        if self.pipeline:
            self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """Begin the next request that has come already, or wait for the rest of this one or for another."""
        super().on_response_complete()
        if self.timeout_keep_alive_task is None or self._in_body:
            return
        self._heads.add(self)
        if self._in_head:
            self._clock.expect_head()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, or whose headers are too long, in the form of all errors.

        Of a connection with too many requests nothing more is read: it is closed behind the last of its answers.
        """
        if self._is_deaf:
            self.flow.pause_reading()
            return
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
        return self._marks_for(origin) if origin else {}

    def _expect_head(self) -> None:
        """Begin with a head. Behind an unanswered request it may take its time: the answer would end with it."""
        self._in_head = True
        self._has_begun = False
        self._head_bytes = 0
        if self._latest is None or self._latest.response_complete:
            self._heads.add(self)
            self._clock.expect_head()

    def _stop_timer(self) -> None:
        self._heads.discard(self)
        self._clock.stop()

    def _refuse(self, refusal: bytes) -> None:
        self._stop_timer()
        if self.transport.is_closing():
            return
        cycle = self._latest
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
