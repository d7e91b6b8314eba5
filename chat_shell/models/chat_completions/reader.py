"""Read the body of an answer, streamed or whole, as fragments."""

from collections.abc import Iterable

import orjson

from chat_shell.models.chat_completions.assembler import AnswerAssembler
from chat_shell.models.ports import ModelFragment
from chat_shell.models.transport.sse import MAX_EVENT_BYTES, EventDecoder
from shared.errors import ModelProtocolViolated, ModelStreamCut
from shared.models.values import JsonValue


class AnswerReader:
    """Feed a body as it comes. Its first byte, not its content type, tells a stream from one JSON answer.

    Servers that ignore `stream` answer with JSON, and proxies mislabel both.
    """

    def __init__(self) -> None:
        self._assembler = AnswerAssembler()
        self._events = EventDecoder()
        self._whole: bytearray | None = None
        self._started = False

    @property
    def frame_count(self) -> int:
        """Frames so far; of a whole answer, its bytes."""
        return self._assembler.frame_count if self._whole is None else len(self._whole)

    @property
    def ended(self) -> bool:
        """The finish reason has come; only usage and the end mark may follow."""
        return self._assembler.ended

    @property
    def done(self) -> bool:
        """The end mark has come; nothing follows."""
        return self._assembler.done

    def feed(self, received: bytes) -> Iterable[ModelFragment]:
        """Take bytes as they come; iterate over what they brought before feeding more.

        Raises:
            ModelError: garbage, or a failure that the provider reports; on iterating, after what came before it.
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
        """Take note that nothing more comes; return the rest, with the answer's end last.

        Raises:
            ModelError: the answer is not whole, is garbage or empty, or reports a failure.
        """
        rest = self._end_of_stream() if self._whole is None else self._end_of_whole(bytes(self._whole))
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

    def _end_of_whole(self, body: bytes) -> list[ModelFragment]:
        try:
            answer: JsonValue = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ModelProtocolViolated("the model's provider sent an answer that is not JSON") from error
        if not isinstance(answer, dict) or not (answer.get("choices") or answer.get("error")):
            raise ModelProtocolViolated("the model's provider sent an answer of an unknown shape")
        fragments = self._assembler.feed_frame(answer)
        self._assembler.done = True
        return fragments
