"""Postings of words, packed for PostgreSQL and scored with NumPy."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, count, pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backend.knowledge.domain.bm25 import K1, SCORE_DECIMALS, Query, Statistics, length_norm
from backend.knowledge.sql.search_index import NumberedEntry

_POSTING = np.dtype([("number", "<u4"), ("count", "<u2"), ("length", "<u2")])
POSTING_BYTES = _POSTING.itemsize
_MOST = 0xFFFF
"""Larger counts and lengths are stored as this; a chunk of 400 tokens has some hundreds."""

Rows = Mapping[str, bytes]
"""Packed postings by word, in one block of one base."""

Scores = NDArray[np.float64]


class Postings(NamedTuple):
    """The postings of several words, one word after another.

    `word_counts` is the number of chunks that have each word, in that order; `numbers` are the numbers of the chunks,
    which continue from base to base.
    """

    word_counts: Mapping[str, int]
    numbers: NDArray[np.intp]
    rows: NDArray[np.void]


def packed(entries: Sequence[NumberedEntry]) -> Rows:
    """Return the packed postings of each word.

    One integer for each token combines the number of its word and the index of its chunk; sorted and counted, these
    integers give the postings of one word after another.
    """
    lengths = np.array([len(entry.tokens) for _, entry in entries])
    words = defaultdict[str, int](count().__next__)
    of_tokens = [words[token] for _, entry in entries for token in entry.tokens]
    pairs = np.array(of_tokens, np.int64) * len(entries) + np.repeat(np.arange(len(entries)), lengths)
    distinct, counts = np.unique(pairs, return_counts=True)
    word_places, chunk_places = np.divmod(distinct, max(len(entries), 1))
    postings = np.empty(len(distinct), _POSTING)
    postings["number"] = np.array([number for number, _ in entries], np.uint32)[chunk_places]
    postings["count"] = np.minimum(counts, _MOST)
    postings["length"] = np.minimum(lengths, _MOST)[chunk_places]
    together = postings.tobytes()
    cuts = (np.searchsorted(word_places, np.arange(len(words) + 1)) * POSTING_BYTES).tolist()
    return {word: together[start:end] for word, start, end in zip(words, cuts, cuts[1:], strict=False)}


def without(rows: Sequence[tuple[str, bytes]], gone: Sequence[int]) -> Rows:
    """Return each word's other postings; all rows at once, because the overhead of NumPy's calls exceeds its work."""
    together = np.frombuffer(b"".join(postings for _, postings in rows), _POSTING)
    stays = ~np.isin(together["number"], np.array(gone, np.uint32))
    left = together[stays].tobytes()
    kept_before = np.concatenate(([0], np.cumsum(stays))) * POSTING_BYTES
    ends = accumulate((len(postings) // POSTING_BYTES for _, postings in rows), initial=0)
    cuts = kept_before[list(ends)].tolist()
    return {term: left[start:end] for (term, _), start, end in zip(rows, cuts, cuts[1:], strict=False)}


def numbers_in(postings: bytes) -> list[int]:
    """Return the numbers of the chunks of one word."""
    return np.frombuffer(postings, _POSTING)["number"].tolist()


def unpacked(found: Iterable[tuple[str, int, bytes]]) -> Postings:
    """Read the postings of words in several bases: word, offset of the base's chunk numbers, packed postings.

    All are unpacked at once: one by one, the overhead of NumPy's calls would be ten times its work.
    """
    rows = sorted(found, key=itemgetter(0))
    together = np.frombuffer(b"".join(postings for _, _, postings in rows), _POSTING)
    row_counts = [len(postings) // POSTING_BYTES for _, _, postings in rows]
    word_counts = defaultdict[str, int](int)
    for (word, _, _), row_count in zip(rows, row_counts, strict=True):
        word_counts[word] += row_count
    starts = np.repeat(np.array([start for _, start, _ in rows], np.intp), row_counts)
    return Postings(word_counts, together["number"] + starts, together)


def without_unseen(postings: Postings, unseen: Sequence[tuple[int, int]]) -> Postings:
    """Leave out the postings of chunks in these ranges, each from its first number to before its end."""
    if not unseen:
        return postings
    is_seen = np.ones(len(postings.numbers), bool)
    for first, end in unseen:
        is_seen &= (postings.numbers < first) | (postings.numbers >= end)
    ends = list(accumulate(postings.word_counts.values(), initial=0))
    seen_before = np.concatenate(([0], np.cumsum(is_seen)))[ends].tolist()
    counts = [after - before for before, after in pairwise(seen_before)]
    word_counts = dict(zip(postings.word_counts, counts, strict=True))
    return Postings(word_counts, postings.numbers[is_seen], postings.rows[is_seen])


def sum_scores(postings: Postings, query: Query, statistics: Statistics, size: int) -> Scores:
    """Score the chunks, which are numbered up to `size`; those without a leading word get 0."""
    words, word_counts = list(postings.word_counts), list(postings.word_counts.values())
    is_led = np.zeros(size, bool)
    is_led[postings.numbers[np.repeat([word in query.leading for word in words], word_counts)]] = True
    # Most postings belong to frequent words in chunks without a leading word.
    kept = np.flatnonzero(is_led[postings.numbers])
    weights = np.array([statistics.idf(word) * (K1 + 1) * (word in query.terms) for word in words])
    rows, weights = postings.rows[kept], np.repeat(weights, word_counts)[kept]
    counts = rows["count"].astype(np.float64)
    fixed, by_length = length_norm(statistics.mean_length)
    saturated = counts / (counts + (fixed + by_length * rows["length"]))
    scores = np.bincount(postings.numbers[kept], weights * saturated, size)
    return scores.astype(np.float64).round(SCORE_DECIMALS)
