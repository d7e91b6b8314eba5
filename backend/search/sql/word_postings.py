"""Postings of words as columns of numbers, and ranges of numbers among them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backend.search.domain.chunks import Range

Numbers = NDArray[np.int64]


class WordPostings(NamedTuple):
    """The chunks that have a word: their numbers, counted from a start, and how often the word stands in each."""

    start: int
    numbers: NDArray[np.integer[Any]]
    counts: NDArray[np.unsignedinteger[Any]]

    def places(self) -> Numbers:
        """Return the numbers, counted from zero."""
        return np.add(self.numbers, self.start, dtype=np.int64)


def join_forms(parts: Sequence[WordPostings]) -> WordPostings:
    """Return the postings of a word from those of its forms, counted from one start; the most frequent form counts."""
    if len(parts) == 1:
        return parts[0]
    numbers, places = np.unique(np.concatenate([part.numbers for part in parts]), return_inverse=True)
    counts = np.zeros(len(numbers), np.uint16)
    np.maximum.at(counts, places, np.concatenate([part.counts for part in parts]))
    return WordPostings(parts[0].start, numbers, counts)


class LegacyPostings(NamedTuple):
    """What the index of the release before holds of some words: their postings, and the lengths of these chunks."""

    by_word: Mapping[str, WordPostings]
    numbers: Numbers
    lengths: Numbers


def gaps(numbers: Numbers, within: Range) -> list[Range]:
    """Return the ranges within a range that hold none of the numbers, which are sorted."""
    edges = np.concatenate(([within.first_number - 1], numbers, [within.end_number]))
    before = np.flatnonzero(np.diff(edges) > 1)
    starts, ends = edges[before] + 1, edges[before + 1]
    return [Range(*one) for one in zip(starts.tolist(), ends.tolist(), strict=True)]


def outside(numbers: Numbers, ranges: Sequence[Range]) -> NDArray[np.bool_]:
    """Tell which of the numbers lie in none of the ranges."""
    return ~inside(numbers, ranges)


def inside(numbers: Numbers, ranges: Sequence[Range]) -> NDArray[np.bool_]:
    """Tell which of the numbers lie in one of the ranges; the ranges may overlap."""
    found = np.zeros(len(numbers), bool)
    if ranges and len(numbers):
        first = min(int(numbers.min()), *(one.first_number for one in ranges))
        end = max(int(numbers.max()) + 1, *(one.end_number for one in ranges))
        steps = np.zeros(end - first + 1, np.int32)
        np.add.at(steps, np.array([one.first_number for one in ranges]) - first, 1)
        np.add.at(steps, np.array([one.end_number for one in ranges]) - first, -1)
        found = np.cumsum(steps)[numbers - first] > 0
    return found
