"""How much of a passage stands in a text whatever the order: the share of its rare words."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.leaks.oracle.reading import folded, is_ideograph, words

LEAST_SHARE = 0.65
"""Of the weight of a sentence's rare words; it is of its passage's that count as much as of those in no other."""

LEAST_WORDS, LEAST_PAIRS = 6, 12
"""A sentence with fewer rare words, or Chinese pairs of characters, is a plain one."""

_GENERAL_SHARE = 0.05
_ENDS = re.compile(r"(?<=[.!?。！？;；])\s*|\n+")
_SUFFIXES = ("ations", "ation", "ings", "ing", "edly", "ies", "ied", "ers", "ed", "er", "es", "ly", "s", "e", "y")
_SHORTEST_STEM = 4


@dataclass
class Containment:
    """Sentences of passages as sets of rare units: stems of English words, pairs of Chinese characters."""

    sentences: dict[str, list[tuple[str, frozenset[str]]]] = field(
        default_factory=dict[str, list[tuple[str, frozenset[str]]]]
    )
    weights: dict[str, float] = field(default_factory=dict[str, float])

    @classmethod
    def over(cls, passages: Mapping[str, str]) -> "Containment":
        """Make one that knows passages by id."""
        found = {key: [(each, frozenset(_units(each))) for each in _ENDS.split(text)] for key, text in passages.items()}
        counts = Counter(
            unit for each in found.values() for unit in frozenset[str]().union(*(units for _, units in each))
        )
        most = max(2.0, _GENERAL_SHARE * len(found))
        weights = {unit: math.log(1 + len(found) / count) for unit, count in counts.items() if count <= most}
        rare = {
            key: [(text, kept) for text, units in each if _is_telling(kept := frozenset(units & weights.keys()))]
            for key, each in found.items()
        }
        return cls(rare, weights)

    def contained(self, text: str, shown: Iterable[str], own: Iterable[str]) -> Iterator[tuple[float, str]]:
        """Yield the sentences of the shown passages that stand in a text, with their shares.

        What the user has written counts for nothing.
        """
        own_units = frozenset(unit for each in own for unit in _units(each))
        there = frozenset(_units(text))
        for key in shown:
            for sentence, units in self.sentences.get(key, ()):
                left = units - own_units
                if _is_telling(left) and (share := self._share(left, there)) >= LEAST_SHARE:
                    yield share, sentence

    def _share(self, units: frozenset[str], there: frozenset[str]) -> float:
        return sum(self.weights[unit] for unit in units & there) / sum(self.weights[unit] for unit in units)


def _is_telling(units: frozenset[str]) -> bool:
    pairs = sum(is_ideograph(unit[0]) for unit in units)
    return pairs / LEAST_PAIRS + (len(units) - pairs) / LEAST_WORDS >= 1


def _units(text: str) -> Iterator[str]:
    before = ""
    for word in words(folded(text)):
        if is_ideograph(word):
            if before:
                yield before + word
            before = word
        else:
            before = ""
            if len(word) >= _SHORTEST_STEM and word.isalpha():
                yield _stem(word)


def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word.removesuffix(suffix)
    return word
