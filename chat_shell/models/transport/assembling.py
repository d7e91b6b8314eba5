"""Collect the frames of an answer as fragments, whatever the provider's API."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from chat_shell.models.ports import (
    CallFragment,
    ModelAnswerEnd,
    ModelFragment,
    ReasoningFragment,
    RefusalFragment,
    TextFragment,
)
from chat_shell.models.transport.frames import FrameParser, LeftOut
from chat_shell.models.transport.logprobs import TokenReader
from shared.errors import ModelError
from shared.models.values import JsonObject, JsonValue

TextKind = type[TextFragment] | type[ReasoningFragment] | type[RefusalFragment]


class FrameAssembler(ABC):
    """Converts frames to fragments: text and pieces of calls at once; whole calls, finish reason and usage at the end.

    `ended` is true once the reason of the end has arrived, `done` once nothing can follow. `frame_count` is the number
    of frames, by which a caller can distinguish a frame from a comment. `left_out` says what was no value that an
    answer can hold.
    """

    def __init__(self) -> None:
        self.done = False
        self.ended = False
        self.frame_count = 0
        self.left_out = set[LeftOut]()
        self._parser = FrameParser(self.left_out)
        self._said_characters = 0
        self._has_text = False
        self._kind: TextKind = TextFragment
        self._pieces: list[str] = []
        self._fragments: list[ModelFragment] = []

    def feed(self, payloads: list[bytes]) -> Iterable[ModelFragment]:
        """Take the payloads of one read; return one fragment for each sequence of text of one kind.

        Raises:
            ModelError: a frame is malformed, or reports a failure; raised behind the fragments before it.
        """
        try:
            self._feed_payloads(payloads)
        except ModelError as error:
            return self._end_with(error)
        return self._take_fragments()

    def feed_whole(self, body: bytes) -> list[ModelFragment]:
        """Take an answer that was not streamed.

        Raises:
            ModelError: it has another shape, or reports a failure.
        """
        self._feed_answer(self._parser.parse(body))
        self.done = True
        return self._take_fragments()

    def finish(self) -> ModelAnswerEnd:
        """Return the end of the answer, and what was left out of it.

        Raises:
            ModelError: the answer is incomplete, empty or failed.
        """
        self._parser.end()
        end = self._end_of_answer()
        return end.model_copy(update={"left_out": tuple(sorted(self.left_out))}) if self.left_out else end

    @abstractmethod
    def _end_of_answer(self) -> ModelAnswerEnd:
        """Return the end of the answer; see `finish`."""

    @abstractmethod
    def _feed_frame(self, frame: JsonObject) -> None:
        """Take one frame of a stream."""

    @abstractmethod
    def _feed_answer(self, answer: JsonObject) -> None:
        """Take an answer that was not streamed."""

    def _feed_payloads(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            if self.done:
                break
            if payload.startswith(b"[DONE]"):
                self.done = True
            elif payload:
                self.frame_count += 1
                self._feed_frame(self._parser.parse(payload))

    def _add_text(self, kind: TextKind, text: str) -> None:
        if kind is not self._kind:
            self._end_fragment()
            self._kind = kind
        self._pieces.append(text)

    def _add_call_piece(self, piece: CallFragment) -> None:
        self._end_fragment()
        self._fragments.append(piece)

    def _add_logprobs(self, tokens: TokenReader, given: JsonValue) -> None:
        """Add the log probabilities of the tokens whose text comes next, as far as an answer may have them."""
        found = tokens.read(given)
        if found is not None:
            self._end_fragment()
            self._fragments.append(found)
        elif tokens.is_full:
            self.left_out.add(LeftOut.LOGPROBS)

    def _end_fragment(self) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        if text:
            self._has_text = True
            self._fragments.append(self._kind(text=text))
            if self._kind is not ReasoningFragment:
                self._said_characters += len(text)

    def _end_with(self, error: ModelError) -> Iterator[ModelFragment]:
        yield from self._take_fragments()
        try:
            raise error
        finally:
            del error  # its frames hold this one: a cycle of both would stay until Python looks for cycles

    def _take_fragments(self) -> list[ModelFragment]:
        if self._pieces:
            self._end_fragment()
        fragments, self._fragments = self._fragments, []
        return fragments
