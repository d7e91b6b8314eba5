"""Scores of chunks for the words of a query, for as many chunks as may be among the best.

Few words of a query tell its best chunks apart: the rarest. Chunks that could not reach the best any more, whichever of
the other words they had, are left out before those are looked up.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backend.search.domain.bm25 import K1, SCORE_DECIMALS, Query, Statistics, length_norm
from backend.search.sql.word_postings import WordPostings

_Floats = NDArray[np.float64]
_Places = NDArray[np.intp]
_MARGIN = 10.0 ** (1 - SCORE_DECIMALS)
"""More than sums in another order and the rounding of scores differ."""

_DENSE = 8
"""Where more than one in so many postings is asked for, to lay out all of them is faster than to look for each."""


_FEW = 32
"""Where there are so many times as many chunks, to look for each posting among them is faster."""


class BestChunks(NamedTuple):
    """Places of chunks in their order, and their scores; those that are left out have lower scores than the best."""

    places: _Places
    scores: _Floats


def find_led(words: Mapping[str, Sequence[WordPostings]], leading: Sequence[str], end: int) -> _Places:
    """Return the places of the chunks that have a leading word."""
    is_led = np.zeros(end, bool)
    for word in leading:
        for part in words[word]:
            is_led[part.start :][part.numbers] = True
    return np.flatnonzero(is_led)


def score_best(
    words: Mapping[str, Sequence[WordPostings]],
    found: tuple[_Places, NDArray[np.integer[Any]]],
    terms: Query,
    statistics: Statistics,
    limit: int,
) -> BestChunks:
    """Score those of the found chunks, places and lengths of which are given, that may be among the first `limit`."""
    searched, norms = SearchedPlaces(found[0]), _find_norms(found[1], statistics)
    weights = {word: statistics.idf(word) * (K1 + 1) for word in terms.terms}
    shares, reached, open_weight = dict[str, _Floats](), np.zeros(len(norms)), sum(weights.values())
    for word in sorted(weights, key=lambda one: (-weights[one], one)):
        times = searched.find_times(words[word])
        shares[word] = weights[word] * (times / (times + norms))
        reached += shares[word]
        open_weight -= weights[word]
        if len(reached) > limit:
            may_be = reached + open_weight >= np.partition(reached, -limit)[-limit] - _MARGIN
            if 2 * np.count_nonzero(may_be) <= len(reached):
                searched, norms, reached = SearchedPlaces(searched.places[may_be]), norms[may_be], reached[may_be]
                shares = {one: share[may_be] for one, share in shares.items()}
    scores = np.zeros(len(norms))
    for word in terms.terms:
        scores += shares[word]
    return BestChunks(searched.places, scores.round(SCORE_DECIMALS))


def _find_norms(lengths: NDArray[np.integer[Any]], statistics: Statistics) -> _Floats:
    fixed, by_length = length_norm(statistics.mean_length)
    return fixed + by_length * lengths.astype(np.float64)


class SearchedPlaces:
    """Places of chunks in their order, whose words are looked up."""

    def __init__(self, places: _Places) -> None:
        self.places = places
        self._from = dict[tuple[int, np.dtype[Any]], tuple[slice, NDArray[np.integer[Any]]]]()

    def find_times(self, parts: Sequence[WordPostings]) -> _Floats:
        """Return how often a word stands in each chunk."""
        times = np.zeros(len(self.places))
        for part in parts:
            within, local = self._count_from(part.start, part.numbers.dtype)
            if len(part.numbers) * _FEW < len(local):
                at = local.searchsorted(part.numbers)
                is_asked = local.take(at, mode="clip") == part.numbers
                times[within][at[is_asked]] += part.counts[is_asked]
            elif not len(local):
                continue
            elif len(local) * _DENSE > len(part.numbers):
                laid_out = np.zeros(max(int(local[-1]), int(part.numbers[-1])) + 1, part.counts.dtype)
                laid_out[part.numbers] = part.counts
                times[within] += laid_out[local]
            else:
                at = part.numbers.searchsorted(local)
                times[within] += part.counts.take(at, mode="clip") * (part.numbers.take(at, mode="clip") == local)
        return times

    def _count_from(self, start: int, kind: np.dtype[Any]) -> tuple[slice, NDArray[np.integer[Any]]]:
        """Return which places such numbers can tell, counted from a start, and these numbers."""
        if (start, kind) not in self._from:
            begin = int(self.places.searchsorted(start))
            local = self.places[begin:] - start
            local = local[: local.searchsorted(np.iinfo(kind).max, side="right")].astype(kind)
            self._from[start, kind] = slice(begin, begin + len(local)), local
        return self._from[start, kind]
