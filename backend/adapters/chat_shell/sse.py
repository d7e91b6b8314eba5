"""Server-sent events, incrementally (WHATWG HTML, section 9.2): bytes in, the data of whole events out."""

from shared.errors import ChatShellUnavailable

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseDecoder:
    """Feed it pieces as they arrive, split anywhere; comments and fields other than `data` bring nothing.

    There is nothing to flush: an event without its empty line was cut off and is none.
    """

    def __init__(self, max_event_bytes: int) -> None:
        self._max_event_bytes = max_event_bytes
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._held_bytes = 0
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
        *whole, rest = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        completed: list[bytes] = []
        for line in whole:
            completed += self._end_line(b"".join((*self._line, line)))
            self._line.clear()
        if rest:
            self._hold(self._line, rest)
        return completed

    def _end_line(self, line: bytes) -> list[bytes]:
        if self._at_start:
            line = line.removeprefix(BYTE_ORDER_MARK)
            self._at_start = False
        if line:
            field, _, value = line.partition(b":")
            if field == b"data":
                self._hold(self._data, value.removeprefix(b" "))
            return []
        data, self._data = self._data, []
        self._held_bytes = 0
        return [b"\n".join(data)] if data else []

    def _hold(self, held: list[bytes], piece: bytes) -> None:
        self._held_bytes += len(piece)
        if self._held_bytes > self._max_event_bytes:
            raise ChatShellUnavailable("The model runner sent an event without an end.")
        held.append(piece)
