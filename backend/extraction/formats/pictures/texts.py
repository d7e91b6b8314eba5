"""The pictures among the blocks of a document: the text that an engine finds in each takes its place."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from time import process_time

from backend.extraction.domain.blocks import Block, Heading, Note, Picture, TextBlock
from backend.extraction.domain.pictures import PictureAnswer
from backend.extraction.formats.text import paragraphs_of, storable
from shared.errors import InvalidRequest


class PictureTexts:
    """Reads the pictures of one document, where it has `ask`; drawing them may take so much CPU time.

    `unread` counts those that an engine could still read; `has_failed` says that one was asked and did not read.
    """

    def __init__(self, ask: Callable[[bytes], PictureAnswer] | None = None, drawing_seconds: float = 0) -> None:
        self._ask = ask
        self._seconds = self._left_seconds = drawing_seconds
        self._read_before = set[bytes]()
        self._heading: Heading | None = None
        self._unnamed = 0
        self.unread = 0
        self.has_failed = False

    def put_into(self, blocks: Iterable[Block]) -> Iterator[TextBlock]:
        """Yield the blocks, with texts or notes in the places of pictures."""
        for block in blocks:
            if isinstance(block, Picture):
                yield from self._read(block)
            else:
                yield block
        if self._unnamed:
            yield Note(text=f"Pictures that were not read: {self._unnamed}.")

    def _read(self, picture: Picture) -> Iterator[TextBlock]:
        try:
            answer = self._answer(picture)
        except InvalidRequest as error:
            yield Note(text=f"{picture.name or 'A picture'} was not read: {error.message}")
            return
        if answer is not None and not answer.failure:
            yield from self._text_of(picture, storable(answer.text))
            return
        self.unread += 1
        self._unnamed += not picture.name
        if answer is not None:
            self.has_failed = True
            yield Note(text=f"{picture.name or 'A picture'} was not read: {answer.failure}.")
        elif picture.name:
            yield Note(text=f"{picture.name} has no text.")

    def _answer(self, picture: Picture) -> PictureAnswer | None:
        """Ask for the text of a picture, where somebody can be asked; what stands on every page is said once."""
        if self._ask is None:
            return None
        if self._left_seconds <= 0:
            return PictureAnswer(failure=f"drawing a document's pictures takes more than {self._seconds:g} seconds")
        began = process_time()
        drawn = picture.draw()
        self._left_seconds -= process_time() - began
        digest = sha256(drawn).digest()
        if digest in self._read_before and not picture.name:
            return PictureAnswer()
        answer = self._ask(drawn)
        if not answer.failure:
            self._read_before.add(digest)
        return answer

    def _text_of(self, picture: Picture, text: str) -> Iterator[TextBlock]:
        paragraphs = paragraphs_of(text)
        if not paragraphs and picture.name:
            yield Note(text=f"{picture.name} has no text.")
        if paragraphs and picture.heading is not None and picture.heading is not self._heading:
            self._heading = picture.heading
            yield picture.heading
        for block in paragraphs:
            yield replace(block, place=picture.place)
