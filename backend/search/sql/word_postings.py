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


NO_POSTINGS = WordPostings(0, np.empty(0, np.int64), np.empty(0, np.uint8))
_SHORT = 2_048
"""Fewer postings are copied faster than they are looked up by themselves."""


def join_short(parts: Sequence[WordPostings]) -> list[WordPostings]:
    """Return the postings of a word, its parts in their order, with all short parts as one."""
    short = [part for part in parts if len(part.numbers) < _SHORT]
    if len(short) < 2:
        return list(parts)
    numbers = np.concatenate([part.numbers for part in short], dtype=np.int64)
    numbers += np.repeat([part.start for part in short], [len(part.numbers) for part in short])
    joined = WordPostings(0, numbers, np.concatenate([part.counts for part in short]))
    return [joined, *(part for part in parts if len(part.numbers) >= _SHORT)]


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
    if not ranges:
        return np.zeros(len(numbers), bool)
    starts, ends = np.array(sorted(ranges)).T
    reached = np.concatenate(([0], np.maximum.accumulate(ends)))
    return reached[starts.searchsorted(numbers, side="right")] > numbers
