"""The choice of segments of a base to merge: few segments make the index small and searches short.

A word that stands in few chunks costs a search one page of each segment, and costs the index its hash in each. Merging
costs writing all postings again. So small segments, which are cheap to write, are merged as soon as that doubles them,
and large ones only when eight neighbours become one.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from backend.knowledge.sql.search_index import IndexSegment, Range
from backend.search.domain.segments import MAX_SPAN

SMALL_BELOW = 128
"""The chunks of a small segment are fewer: writing so many takes some 30 ms."""

SMALL_AT_ONCE = 64
"""So many small segments are merged at once at most."""

MERGED_BELOW = (512, 4_096, 32_768)
"""Eight neighbours that all have fewer chunks than one of these are merged into one segment."""

MERGED_AT_ONCE = 8

MOST_GONE = 64
"""A segment with more deleted ranges, or with a quarter of its chunks deleted, is written anew."""


def chosen_to_merge(segments: Sequence[IndexSegment], gone: Sequence[Range]) -> Sequence[IndexSegment]:
    """Choose neighbours to be merged, or a segment to be written anew; nothing where all is well.

    Segments are given, and chosen, in the order of their numbers.
    """
    return _doubled(segments) or _of_a_size(segments) or _worn(segments, gone)


def _doubled(segments: Sequence[IndexSegment]) -> Sequence[IndexSegment]:
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


def _worn(segments: Sequence[IndexSegment], gone: Sequence[Range]) -> Sequence[IndexSegment]:
    for one in segments:
        within = [part for part in gone if one.first_number <= part.first_number < one.end_number]
        lost = sum(part.end_number - part.first_number for part in within)
        if len(within) > MOST_GONE or lost * 4 > one.size:
            return [one]
    return ()


def _within_span(run: Sequence[IndexSegment]) -> Iterator[IndexSegment]:
    """Yield as many segments as one segment may span."""
    return takewhile(lambda one: one.end_number - run[0].first_number <= MAX_SPAN, run)
