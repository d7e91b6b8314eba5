"""Merging neighbouring segments: few segments make the index small and searches short.

A word that stands in few chunks costs a search one page of each segment, and costs the index its hash in each. Merging
costs writing all postings again. So small segments, which are cheap to write, are merged as soon as that doubles them,
and large ones only when eight neighbours become one.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from backend.search.domain.chunks import Range
from backend.search.sql.segment_rows import IndexSegment
from backend.search.sql.segments import MAX_SPAN, Postings, join, lengths_in, pack_lengths, pages_of, postings_in
from backend.search.sql.word_postings import Numbers, outside

_HASH_BITS = 64

SMALL_BELOW = 128
"""The chunks of a small segment are fewer: writing so many takes some 30 ms."""

SMALL_AT_ONCE = 64
"""So many small segments are merged at once at most."""

MERGED_BELOW = (512, 4_096, 32_768)
"""Eight neighbours that all have fewer chunks than one of these are merged into one segment."""

MERGED_AT_ONCE = 8

MOST_GONE = 64
"""A segment with more deleted ranges, or with a quarter of its chunks deleted, is written anew."""


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


def merge_pages(
    found: Sequence[tuple[int, Sequence[bytes]]], gone: Sequence[Range], part: Slice, target: tuple[int, int]
) -> dict[int, bytes]:
    """Merge pages of segments, each given with its first number, without the chunks that are gone.

    `target` is the first number of the merged segment, and the bits by which it is divided.
    """
    first, bits = target
    whole = join(one._replace(numbers=one.numbers + start) for start, pages in found for one in map(postings_in, pages))
    kept = outside(whole.numbers, gone)
    if part.bits:
        kept &= whole.hashes >> np.uint64(_HASH_BITS - part.bits) == part.place
    return pages_of(Postings(whole.hashes[kept], whole.numbers[kept] - first, whole.counts[kept]), bits)


def merge_lengths(found: Sequence[tuple[int, bytes]], numbers: Range, gone: Sequence[Range]) -> tuple[bytes, int]:
    """Join the lengths of segments, each given with its first number; return also how many chunks there are.

    A chunk that is gone, or that is in none of the segments, has the length 0.
    """
    lengths = np.zeros(numbers.end_number - numbers.first_number, np.int64)
    for first, packed in found:
        start = first - numbers.first_number
        lengths[start : start + len(packed) // 2] = lengths_in(packed)
    every = np.arange(numbers.first_number, numbers.end_number)
    lengths[~outside(every, gone)] = 0
    return pack_lengths(lengths), int(np.count_nonzero(lengths))


def find_missing(first: int, lengths: bytes, there: Numbers, hidden: Sequence[Range]) -> list[Range]:
    """Return the ranges of chunks that a segment has and that are neither there nor hidden."""
    numbers = first + np.flatnonzero(lengths_in(lengths))
    missing = np.setdiff1d(numbers[outside(numbers, hidden)], there)
    if not len(missing):
        return []
    cuts = np.flatnonzero(np.diff(missing) > 1) + 1
    return [Range(int(run[0]), int(run[-1]) + 1) for run in np.split(missing, cuts)]


def choose_to_merge(segments: Sequence[IndexSegment], gone: Sequence[Range]) -> Sequence[IndexSegment]:
    """Choose neighbours to be merged, or a segment to be written anew; nothing where all is well.

    Segments are given, and chosen, in the order of their numbers.
    """
    return _find_doubled(segments) or _of_a_size(segments) or _find_worn(segments, gone)


def _find_doubled(segments: Sequence[IndexSegment]) -> Sequence[IndexSegment]:
    """Choose small neighbours, the largest of which has no more chunks than the others together.

    A chunk is then written anew at most seven times before its segment is small no more.
    """
    for start in range(len(segments)):
        small = list(takewhile(lambda one: one.size < SMALL_BELOW, segments[start : start + SMALL_AT_ONCE]))
        end = total = largest = 0
        for count, one in enumerate(_within_span(small), 1):
            total, largest = total + one.size, max(largest, one.size)
            if count > 1 and 2 * largest <= total:
                end = count
        if end:
            return small[:end]
    return ()


def _of_a_size(segments: Sequence[IndexSegment]) -> Sequence[IndexSegment]:
    """Choose eight neighbours below a size; fewer where no more fit into a segment, and they outgrow the size."""
    for most in MERGED_BELOW:
        for start in range(len(segments)):
            some = segments[start : start + MERGED_AT_ONCE]
            below = list(takewhile(lambda one, most=most: one.size < most, some))
            fitting = list(_within_span(below))
            is_full = len(fitting) < len(below) and sum(one.size for one in fitting) >= most
            if len(fitting) == MERGED_AT_ONCE or (is_full and len(fitting) > 1):
                return fitting
    return ()


def _find_worn(segments: Sequence[IndexSegment], gone: Sequence[Range]) -> Sequence[IndexSegment]:
    for one in segments:
        within = [part for part in gone if one.first_number <= part.first_number < one.end_number]
        lost = sum(part.end_number - part.first_number for part in within)
        if len(within) > MOST_GONE or lost * 4 > one.size:
            return [one]
    return ()


def _within_span(run: Sequence[IndexSegment]) -> Iterator[IndexSegment]:
    """Yield as many segments as one segment may span."""
    return takewhile(lambda one: one.end_number - run[0].first_number <= MAX_SPAN, run)
