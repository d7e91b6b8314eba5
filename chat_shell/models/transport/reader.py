"""Read the body of an answer, which is a stream or one JSON object, as fragments."""

from collections.abc import Iterable

from chat_shell.models.ports import ModelFragment
from chat_shell.models.transport.assembling import FrameAssembler
from shared.errors import ModelProtocolViolated, ModelStreamCut
from shared.server_sent_events import EventDecoder

MAX_EVENT_BYTES = 8 * 1024 * 1024
"""Far longer than any real frame."""


class AnswerReader:
    """Reads a body in pieces of any size. Its first byte determines whether it is a stream or one JSON object.

    The content type is not used: servers that ignore `stream` answer with JSON, and proxies mislabel both.
    """

    def __init__(self, assembler: FrameAssembler) -> None:
        self._assembler = assembler
        too_long = ModelProtocolViolated("the model's provider sent a frame without an end")
        self._events = EventDecoder(MAX_EVENT_BYTES, too_long)
        self._whole: bytearray | None = None
        self._started = False

    @property
    def frame_count(self) -> int:
        """The number of frames so far; of an answer that is not streamed, the number of its bytes."""
        return self._assembler.frame_count if self._whole is None else len(self._whole)

    @property
    def ended(self) -> bool:
        """Whether the finish reason has arrived; only usage and the end mark may follow."""
        return self._assembler.ended

    @property
    def done(self) -> bool:
        """Whether the end mark has arrived; nothing follows it."""
        return self._assembler.done

    def feed(self, received: bytes) -> Iterable[ModelFragment]:
        """Take received bytes and return their fragments, over which the caller iterates before the next call.

        Raises:
            ModelError: the bytes are malformed or report a failure; raised after the fragments that precede it.
        """
        if not self._started:
            received = self._start(received)
        if self._whole is None:
            return self._assembler.feed(self._events.feed(received))
        self._whole += received
        if len(self._whole) > MAX_EVENT_BYTES:
            raise ModelProtocolViolated("the model's provider sent an answer without an end")
        return []

    def end(self) -> list[ModelFragment]:
        """Return the remaining fragments once the body has ended; the last one is the end of the answer.

        Raises:
            ModelError: the answer is incomplete, malformed or empty, or reports a failure.
        """
        rest = self._end_of_stream() if self._whole is None else self._assembler.feed_whole(bytes(self._whole))
        return [*rest, self._assembler.finish()]

    def _start(self, received: bytes) -> bytes:
        received = received.lstrip()
        if received:
            self._started = True
            if received.startswith(b"{"):
                self._whole = bytearray()
            elif received.startswith(b"<"):
                raise ModelProtocolViolated("the model's provider answered with a page, not with an answer")
        return received

    def _end_of_stream(self) -> list[ModelFragment]:
        try:
            rest = list(self._assembler.feed(self._events.flush()))
        except ModelProtocolViolated as error:
            raise ModelStreamCut("the model's provider broke off in the middle of a frame") from error
        if self._started and not self._assembler.frame_count and not self.done:
            raise ModelProtocolViolated("the model's provider answered with something that is no stream")
        return rest
