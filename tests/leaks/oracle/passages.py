"""The longest runs that a text shares with passages, found by their n-grams and then extended."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.leaks.oracle.reading import is_ideograph

GRAM = 7
"""A run worth reporting has at least so many words."""

SQUEEZED_GRAM = 24
_SQUEEZED_STEP = 8
"""Runs of 31 characters without spaces are found for certain: 7 English words are some 35."""

OWN_WORDS, OWN_IDEOGRAPHS = 5, 8
"""So long a run is the user's own."""


class Run(NamedTuple):
    """Words that stand in both, and the passages where they do."""

    words: tuple[str, ...]
    passages: frozenset[str]

    def longest_without(self, own: "OwnWords") -> tuple[str, ...]:
        """Return the largest part that is left when the user's own words are taken out."""
        return max(own.remaining(self.words), key=weight, default=())


def weight(run: Sequence[str], english: int = 7, chinese: int = 10) -> float:
    """Return how long a run is, measured in whole runs of so many words or ideographs."""
    ideographs = sum(map(is_ideograph, run))
    return (len(run) - ideographs) / english + ideographs / chinese


class Passages:
    """Protected passages by id."""

    def __init__(self, texts: Mapping[str, Sequence[str]]) -> None:
        self._ids: list[list[str]] = []
        self._words: list[Sequence[str]] = []
        self._places: dict[int, list[tuple[int, int]]] = {}
        self._squeezed: dict[str, int] = {}
        numbers: dict[tuple[str, ...], int] = {}
        for passage_id, found in texts.items():
            key = tuple(found)
            if key not in numbers:
                numbers[key] = len(self._words)
                self._add(key)
            self._ids[numbers[key]].append(passage_id)

    def runs(self, text: Sequence[str]) -> Iterator[Run]:
        """Yield every run of at least GRAM words that cannot be made longer to either side."""
        for at, gram in enumerate(_grams(text)):
            found: dict[int, set[str]] = {}
            for number, place in self._places.get(gram, ()):
                if length := self._length_from(text, at, number, place):
                    found.setdefault(length, set()).update(self._ids[number])
            for length, ids in found.items():
                yield Run(tuple(text[at : at + length]), frozenset(ids))

    def squeezed_runs(self, text: str) -> Iterator[Run]:
        """Yield pieces of text without any spaces that stand in passages without theirs."""
        for start in range(len(text) - SQUEEZED_GRAM + 1):
            number = self._squeezed.get(text[start : start + SQUEEZED_GRAM])
            if number is not None:
                yield Run((text[start : start + SQUEEZED_GRAM],), frozenset(self._ids[number]))

    def _add(self, passage: tuple[str, ...]) -> None:
        number = len(self._words)
        self._words.append(passage)
        self._ids.append([])
        for place, gram in enumerate(_grams(passage)):
            self._places.setdefault(gram, []).append((number, place))
        whole = "".join(passage)
        for start in range(0, len(whole) - SQUEEZED_GRAM + 1, _SQUEEZED_STEP):
            self._squeezed.setdefault(whole[start : start + SQUEEZED_GRAM], number)

    def _length_from(self, text: Sequence[str], at: int, number: int, place: int) -> int:
        passage = self._words[number]
        if at and place and text[at - 1] == passage[place - 1]:
            return 0
        length = 0
        while (
            at + length < len(text) and place + length < len(passage) and text[at + length] == passage[place + length]
        ):
            length += 1
        return length if length >= GRAM else 0


class OwnWords:
    """What the user has written, to be taken out of shared runs."""

    def __init__(self, user_words: Iterable[Sequence[str]]) -> None:
        self._grams = {
            tuple(text[at : at + size])
            for text in user_words
            for size in (OWN_WORDS, OWN_IDEOGRAPHS)
            for at in range(len(text) - size + 1)
        }

    def remaining(self, run: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yield the pieces of a run that are not the user's own."""
        own = [False] * len(run)
        for size in (OWN_WORDS, OWN_IDEOGRAPHS):
            for at in range(len(run) - size + 1):
                gram = tuple(run[at : at + size])
                if gram in self._grams and (size == OWN_IDEOGRAPHS or not all(map(is_ideograph, gram))):
                    own[at : at + size] = [True] * size
        piece: list[str] = []
        for word, is_own in zip(run, own, strict=True):
            if is_own:
                yield tuple(piece)
                piece = []
            else:
                piece.append(word)
        yield tuple(piece)


def _grams(words: Sequence[str]) -> Iterator[int]:
    return map(hash, zip(*(words[offset:] for offset in range(GRAM)), strict=False))
