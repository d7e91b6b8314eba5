"""Merging the pages of neighbouring segments."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from backend.knowledge.sql.search_index import Range
from backend.knowledge.sql.word_postings import Numbers, outside
from backend.search.domain.segments import Postings, joined, lengths_in, packed_lengths, pages_of, postings_in

_HASH_BITS = 64


class Slice(NamedTuple):
    """The part of all hashes that begin with `bits` bits of the value `place`."""

    place: int
    bits: int

    def pages(self, bits: int) -> tuple[int, int]:
        """Return the first and the last page with such hashes, in a segment that is divided by so many bits."""
        finer = bits - self.bits
        if finer < 0:
            return self.place >> -finer, self.place >> -finer
        return self.place << finer, ((self.place + 1) << finer) - 1


def merged_pages(
    found: Sequence[tuple[int, Sequence[bytes]]], gone: Sequence[Range], part: Slice, target: tuple[int, int]
) -> dict[int, bytes]:
    """Merge pages of segments, each given with its first number, without the chunks that are gone.

    `target` is the first number of the merged segment, and the bits by which it is divided.
    """
    first, bits = target
    whole = joined(
        one._replace(numbers=one.numbers + start) for start, pages in found for one in map(postings_in, pages)
    )
    kept = outside(whole.numbers, gone)
    if part.bits:
        kept &= whole.hashes >> np.uint64(_HASH_BITS - part.bits) == part.place
    return pages_of(Postings(whole.hashes[kept], whole.numbers[kept] - first, whole.counts[kept]), bits)


def merged_lengths(found: Sequence[tuple[int, bytes]], numbers: Range, gone: Sequence[Range]) -> tuple[bytes, int]:
    """Join the lengths of segments, each given with its first number; return also how many chunks there are.

    A chunk that is gone, or that is in none of the segments, has the length 0.
    """
    lengths = np.zeros(numbers.end_number - numbers.first_number, np.int64)
    for first, packed in found:
        start = first - numbers.first_number
        lengths[start : start + len(packed) // 2] = lengths_in(packed)
    every = np.arange(numbers.first_number, numbers.end_number)
    lengths[~outside(every, gone)] = 0
    return packed_lengths(lengths), int(np.count_nonzero(lengths))


def missing_numbers(first: int, lengths: bytes, there: Numbers, hidden: Sequence[Range]) -> list[Range]:
    """Return the ranges of chunks that a segment has and that are neither there nor hidden."""
    numbers = first + np.flatnonzero(lengths_in(lengths))
    missing = np.setdiff1d(numbers[outside(numbers, hidden)], there)
    if not len(missing):
        return []
    cuts = np.flatnonzero(np.diff(missing) > 1) + 1
    return [Range(int(run[0]), int(run[-1]) + 1) for run in np.split(missing, cuts)]
