"""Decode server-sent events incrementally (WHATWG HTML, section 9.2)."""

from shared.errors import BallastError


class EventDecoder:
    """Takes received bytes, however they are split, and returns the `data` of each complete event.

    Comments and the fields `event`, `id` and `retry` are ignored. A field named `error`, which some servers send in
    place of `data`, is handed on as a payload with that one key. `too_long` is raised for an event of more than
    `max_event_bytes`: an endless one must not fill the memory.
    """

    def __init__(self, max_event_bytes: int, too_long: BallastError) -> None:
        self._max_event_bytes = max_event_bytes
        self._too_long = too_long
        self._partial: list[bytes] = []
        self._partial_bytes = 0
        self._payload: list[bytes] = []
        self._payload_bytes = 0
        self._after_carriage_return = False
        self._at_start = True

    def feed(self, received: bytes) -> list[bytes]:
        """Take bytes and return the payloads they completed."""
        if self._is_one_event(received):
            self._at_start = False
            return [received[6:-2]]
        received = self._without_half_a_line_end(received)
        events: list[bytes] = []
        if b"\n" in received or b"\r" in received:
            lines = b"".join([*self._partial, received]).splitlines()
            self._partial.clear()
            self._partial_bytes = 0
            received = b"" if received.endswith((b"\n", b"\r")) else lines.pop()
            events = self._events(lines)
        if received:
            self._partial.append(received)
            self._partial_bytes += len(received)
        if self._partial_bytes + self._payload_bytes > self._max_event_bytes:
            raise self._too_long
        return events

    def flush(self) -> list[bytes]:
        """Return the last event once the stream has ended, even where its final line ends are missing."""
        return self.feed(b"\n\n")

    def _is_one_event(self, received: bytes) -> bool:
        """Whether bytes are a line of `data` and its end, with nothing before: so most servers send most events."""
        return (
            received.startswith(b"data: ")
            and received.endswith(b"\n\n")
            and received.find(b"\n") == len(received) - 2
            and b"\r" not in received
            and not (self._partial or self._payload or self._after_carriage_return)
        )

    def _without_half_a_line_end(self, received: bytes) -> bytes:
        if self._after_carriage_return and received:
            self._after_carriage_return = False
            received = received.removeprefix(b"\n")
        if received.endswith(b"\r"):
            self._after_carriage_return = True
        return received

    def _events(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._take(line[6:] if line.startswith(b" ", 5) else line[5:])
            elif not line:
                if self._payload:
                    events.append(b"\n".join(self._payload))
                    self._payload.clear()
                    self._payload_bytes = 0
            else:
                self._take_rare(line)
        return events

    def _take(self, value: bytes) -> None:
        self._at_start = False
        self._payload.append(value)
        self._payload_bytes += len(value)

    def _take_rare(self, line: bytes) -> None:
        if self._at_start and line.startswith(b"\xef\xbb\xbfdata:"):
            self._take(line[8:].removeprefix(b" "))
        elif line.startswith(b"error:"):
            self._take(b'{"error":' + line[6:] + b"}")
        elif line == b"data":
            self._take(b"")
