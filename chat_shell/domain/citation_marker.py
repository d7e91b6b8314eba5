"""One bracket of a streamed text, as long as it may still become a citation."""

from collections.abc import Container
from enum import Enum

_CLOSERS = {"[": "]", "【": "】"}
_SEPARATORS = ",，、"
_DIGITS = "0123456789"
_MAX_DIGITS = 9


class _Phase(Enum):
    """What was accepted last."""

    OPEN = "open"
    NUMBER = "number"
    SEPARATOR = "separator"
    CLOSED = "closed"


class CitationMarker:
    """Accepts `[1]`, `[1, 2]`, `[[1]]`, `【1】` character by character; numbers must be known documents."""

    def __init__(self, opener: str, known: Container[int]):
        self._phase = _Phase.OPEN
        self.numbers: list[int] = []
        self._known = known
        self._held = [opener]
        self._closer = _CLOSERS.get(opener, "")
        self._openers = 1
        self._closers = 0
        self._number = ""

    @property
    def held(self) -> str:
        """The text so far, as the model wrote it."""
        return "".join(self._held)

    @property
    def complete(self) -> bool:
        """Whether every bracket is closed."""
        return self._closers == self._openers

    def is_link(self, following: str, *, begins_line: bool) -> bool:
        """Whether the character behind a complete marker makes it a link or a link's definition."""
        return self._closer == "]" and (following == "(" or (following == ":" and begins_line))

    def accept(self, character: str) -> bool:
        """Take the character if the marker can go on with it."""
        accepted = self._step(character)
        if accepted:
            self._held.append(character)
        return accepted

    def _step(self, character: str) -> bool:
        match self._phase:
            case _Phase.OPEN:
                return self._after_opener(character)
            case _Phase.NUMBER:
                return self._in_number(character)
            case _Phase.SEPARATOR:
                return self._after_separator(character)
            case _Phase.CLOSED:
                return self._after_closer(character)

    def _after_opener(self, character: str) -> bool:
        if character == "[" and self._closer == "]" and self._openers == 1:
            self._openers = 2
            return True
        return self._begin_number(character)

    def _begin_number(self, character: str) -> bool:
        if character not in _DIGITS or character == "0":
            return False
        self._number = character
        self._phase = _Phase.NUMBER
        return True

    def _in_number(self, character: str) -> bool:
        if character in _DIGITS:
            self._number += character
            return len(self._number) <= _MAX_DIGITS
        if int(self._number) not in self._known:
            return False
        if character not in _SEPARATORS and character != self._closer:
            return False
        self.numbers.append(int(self._number))
        self._phase = _Phase.SEPARATOR
        if character == self._closer:
            self._phase = _Phase.CLOSED
            self._closers = 1
        return True

    def _after_separator(self, character: str) -> bool:
        if character == " ":
            return self._held[-1] != " "
        return self._begin_number(character)

    def _after_closer(self, character: str) -> bool:
        if character != self._closer or self.complete:
            return False
        self._closers += 1
        return True
