"""An incremental decoder of server-sent events (WHATWG HTML, section 9.2)."""

from shared.errors import ChatShellUnavailable

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseDecoder:
    """Decodes pieces that are split anywhere; comments and fields other than `data` are ignored.

    There is nothing to flush: an event without its empty line was cut off and is ignored.
    """

    def __init__(self, max_event_bytes: int) -> None:
        self._max_event_bytes = max_event_bytes
        self._partial_line: list[bytes] = []
        self._partial_line_bytes = 0
        self._values: list[bytes] = []
        self._values_bytes = 0
        self._skip_line_feed = False
        self._at_start = True

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that this piece completes.

        Raises:
            ChatShellUnavailable: an event is longer than allowed.
        """
        if self._skip_line_feed and piece:
            piece = piece.removeprefix(b"\n")
            self._skip_line_feed = False
        self._skip_line_feed = self._skip_line_feed or piece.endswith(b"\r")
        *line_ends, rest = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        completed: list[bytes] = []
        for line_end in line_ends:
            completed += self._end_line(line_end)
        self._partial_line.append(rest)
        self._partial_line_bytes += len(rest)
        if self._partial_line_bytes + self._values_bytes > self._max_event_bytes:
            raise ChatShellUnavailable("The model runner sent an event without an end.")
        return completed

    def _end_line(self, line_end: bytes) -> list[bytes]:
        line = b"".join((*self._partial_line, line_end))
        self._partial_line.clear()
        self._partial_line_bytes = 0
        if self._at_start:
            line = line.removeprefix(BYTE_ORDER_MARK)
            self._at_start = False
        if not line:
            return self._end_event()
        field, _, value = line.partition(b":")
        if field == b"data":
            self._values.append(value.removeprefix(b" "))
            self._values_bytes += len(value)
        return []

    def _end_event(self) -> list[bytes]:
        values, self._values = self._values, []
        self._values_bytes = 0
        return [b"\n".join(values)] if values else []
