"""BM25 over segments, in both databases alike: pages of the query's words are read, and scored with NumPy.

A search reads the sizes of its bases, their visible segments, and of each segment the pages in which the words of the
query would stand. What no reader may see is left out of scores and counts: the chunks of unseen editions and those that
were deleted, by the ranges of their numbers.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, collate, select

from backend.foundation.sql.database import compute_off_event_loop
from backend.foundation.sql.parameters import is_among, list_parameter
from backend.foundation.sql.statements import Statement
from backend.search.domain.bm25 import (
    MAX_RANKED_TERMS,
    Statistics,
    greatest_score,
    plan,
)
from backend.search.domain.chunks import Allowed, Found, Range
from backend.search.sql import tables
from backend.search.sql.chunk_rows import IS_OF_DOCUMENT
from backend.search.sql.indexed_bases import BaseReader, IndexedBase
from backend.search.sql.legacy_postings import legacy_postings
from backend.search.sql.scoring import find_led, score_best
from backend.search.sql.segment_rows import IndexSegment, VisibleSegments
from backend.search.sql.segments import ReadPage, lengths_in, page_key, unpack_page, word_hashes
from backend.search.sql.word_postings import NO_POSTINGS, LegacyPostings, WordPostings, join_forms, join_short, outside

_document, _chunk = tables.document, tables.chunk

_TIES_AT_ONCE = 10_000
Terms = Mapping[str, Sequence[str]]
"""The words of a query, each with the tokens under any of which it is found."""

_ReadPages = Callable[[Connection, Mapping[int, IndexSegment]], Mapping[int, ReadPage]]


class _Read(NamedTuple):
    """What is read for the words of a query; the lengths of chunks, by segment, only where they are to be ranked.

    A word has a hash for each of the tokens under any of which it is found.
    """

    hashes: Mapping[str, Mapping[str, int]]
    pages: Mapping[int, ReadPage]
    legacy: Mapping[str, LegacyPostings]
    lengths: Mapping[int, bytes] | None = None


class _Corpus(NamedTuple):
    """What a query finds: for each word its chunks, numbered from base to base, and how many numbers there are."""

    words: Mapping[str, Sequence[WordPostings]]
    end: int

    def counts(self) -> dict[str, int]:
        """In how many chunks each word stands."""
        return {word: sum(len(part.numbers) for part in parts) for word, parts in self.words.items()}


class FoundByWords(NamedTuple):
    """Chunks that have words of a question, and the score that no chunk could exceed."""

    chunks: list[Found]
    greatest_score: float


class _Ranked(NamedTuple):
    """The chunks above the lowest score within the limit, and all that have it."""

    above: list[Found]
    tied: list[Found]
    greatest_score: float


class SegmentIndex:
    """The search index over the segments of the searched bases."""

    def __init__(self, dialect: str) -> None:
        self._dialect = "postgresql" if dialect == "postgresql" else "sqlite"
        among = partial(is_among, name="ids", dialect=self._dialect)
        self._bases = BaseReader(self._dialect)
        self._segments = VisibleSegments(self._dialect, unpack_page)
        plain_order = "C" if self._dialect == "postgresql" else "BINARY"
        is_tied = is_among(_chunk.c.number, "numbers", self._dialect)
        self._first_by_text = Statement(
            select(_chunk.c.number, _chunk.c.text, _document.c.name, _chunk.c.ordinal)
            .join_from(_chunk, _document, IS_OF_DOCUMENT)
            .where(among(_chunk.c.knowledge_base_id), is_tied)
            .order_by(collate(_chunk.c.text, plain_order), collate(_document.c.name, plain_order), _chunk.c.ordinal)
            .limit(bindparam("limit"))
        )

    def search(
        self,
        connection: Connection,
        base_ids: Sequence[str],
        terms: Terms,
        limit: int,
        allowed: Allowed = None,
    ) -> FoundByWords:
        """Return the best chunks in any order: `limit` of them, where so many match, and more that tie with the last.

        Unseen chunks are not found and do not change scores.
        """
        bases = self._bases.read(connection, base_ids)
        read = self._read_words(connection, bases, terms, self._segments.pages)
        lengths = self._segments.lengths(connection, (segment for base in bases for segment in base.segments))
        work = partial(_rank, bases, read._replace(lengths=lengths), limit, allowed)
        ranked = compute_off_event_loop(connection, work)
        tied = self._first_of(connection, ranked.tied, limit) if len(ranked.tied) > limit else ranked.tied
        return FoundByWords([*ranked.above, *tied], ranked.greatest_score)

    def chunk_counts(self, connection: Connection, base_id: str, tokens: Sequence[str]) -> Mapping[str, int]:
        """Return in how many chunks of a base each token stands; without tokens of no chunk."""
        return self._corpus(connection, base_id, tokens).counts()

    def numbers(self, connection: Connection, base_id: str, tokens: Sequence[str]) -> Mapping[str, Collection[int]]:
        """Return the numbers of the chunks in which each token stands."""
        corpus = self._corpus(connection, base_id, tokens)
        return {word: [one for part in parts for one in part.places().tolist()] for word, parts in corpus.words.items()}

    def _corpus(self, connection: Connection, base_id: str, tokens: Sequence[str]) -> _Corpus:
        """Read the postings of tokens in a base, without the lengths of its chunks."""
        bases = self._bases.read(connection, [base_id])
        terms = {token: (token,) for token in tokens}
        read = self._read_words(connection, bases, terms, self._segments.unkept_pages)
        return compute_off_event_loop(connection, partial(_corpus_of, bases, read))

    def _read_words(
        self, connection: Connection, bases: Sequence[IndexedBase], terms: Terms, read_pages: _ReadPages
    ) -> _Read:
        tokens = list(dict.fromkeys(chain.from_iterable(terms.values())))
        hashes = dict(zip(tokens, word_hashes(tokens).tolist(), strict=True))
        asked = {
            page_key(segment.id, segment.bits, hashed): segment
            for base in bases
            for segment in base.segments
            for hashed in hashes.values()
        }
        pages = read_pages(connection, asked)
        legacy = {base.id: legacy_postings(connection, base.id, tokens, base.legacy) for base in bases if base.legacy}
        of_terms = {term: {token: hashes[token] for token in forms} for term, forms in terms.items()}
        return _Read(of_terms, pages, legacy)

    def _first_of(self, connection: Connection, tied: Sequence[Found], limit: int) -> list[Found]:
        """Return the first by text among chunks that tie."""
        by_base: dict[str, list[Found]] = {}
        for one in tied:
            by_base.setdefault(one.base_id, []).append(one)
        ordered: list[tuple[tuple[str, str, int], Found]] = []
        for base_id, of_base in by_base.items():
            for start in range(0, len(of_base), _TIES_AT_ONCE):
                some = {one.number: one for one in of_base[start : start + _TIES_AT_ONCE]}
                asked = {
                    "ids": list_parameter([base_id], self._dialect),
                    "numbers": list_parameter(list(some), self._dialect),
                    "limit": limit,
                }
                found = self._first_by_text.rows(connection, asked)
                ordered += [((row["text"], row["name"], row["ordinal"]), some[row["number"]]) for row in found]
        return [one for _, one in sorted(ordered)[:limit]]


def _corpus_of(bases: Sequence[IndexedBase], read: _Read) -> _Corpus:
    words: dict[str, list[WordPostings]] = {}
    hashes = read.hashes
    if (
        read.lengths is not None
        and len(hashes) > MAX_RANKED_TERMS
        and not any(one.hidden or one.legacy for one in bases)
    ):
        hashes = _rarest(bases, hashes, read.pages)
    segments = [(base.start + segment.first_number, segment) for base in bases for segment in base.segments]
    for word, forms in hashes.items():
        parts = [
            join_forms([WordPostings(start, *one) for one in found])
            for start, segment in segments
            if (found := _find_forms(segment, forms.values(), read.pages))
        ]
        parts += [_join_legacy(base, read, forms) for base in bases if base.id in read.legacy]
        if parts := join_short([part for part in parts if len(part.numbers)]):
            words[word] = parts
    hidden = [
        Range(base.start + one.first_number, base.start + one.end_number) for base in bases for one in base.hidden
    ]
    return _Corpus(_without(words, hidden) if hidden else words, _end_of(bases))


def _find_forms(
    segment: IndexSegment, hashes: Iterable[int], pages: Mapping[int, ReadPage]
) -> list[tuple[NDArray[np.uint16], NDArray[np.unsignedinteger[Any]]]]:
    """Return the postings of those forms of a word, given by their hashes, that a segment holds."""
    found = (pages[page_key(segment.id, segment.bits, hashed)].find(hashed) for hashed in hashes)
    return [postings for postings in found if postings is not None]


def _rarest(
    bases: Sequence[IndexedBase], hashes: Mapping[str, Mapping[str, int]], pages: Mapping[int, ReadPage]
) -> Mapping[str, Mapping[str, int]]:
    """Choose the words to rank by their counts: a word that has many forms counts as its most frequent one."""
    segments = [segment for base in bases for segment in base.segments]
    counts = {
        word: sum(
            max((len(numbers) for numbers, _ in _find_forms(one, forms.values(), pages)), default=0) for one in segments
        )
        for word, forms in hashes.items()
    }
    chosen = plan(counts, Statistics(chunk_count=0, token_count=0, chunk_counts=counts)).terms
    return {word: hashes[word] for word in chosen}


def _join_legacy(base: IndexedBase, read: _Read, forms: Iterable[str]) -> WordPostings:
    """Return the postings of a word in documents of the release before."""
    by_word = read.legacy[base.id].by_word
    parts = [by_word[token] for token in forms if token in by_word]
    return join_forms(parts)._replace(start=base.start) if parts else NO_POSTINGS


def _find_lengths(bases: Sequence[IndexedBase], read: _Read, places: NDArray[np.intp]) -> NDArray[np.uint32]:
    """Return the lengths of the chunks at some places, which are in their order."""
    lengths, packed_of = np.zeros(len(places), np.uint32), read.lengths or {}
    for base in bases:
        for segment in base.segments:
            start = base.start + segment.first_number
            packed = lengths_in(packed_of[segment.id])
            its = slice(*places.searchsorted((start, start + len(packed))).tolist())
            lengths[its] = packed[places[its] - start]
        if base.id in read.legacy:
            legacy = read.legacy[base.id]
            _, its, found = np.intersect1d(places, legacy.numbers + base.start, return_indices=True)
            lengths[its] = legacy.lengths[found]
    return lengths


def _end_of(bases: Sequence[IndexedBase]) -> int:
    """Return how many numbers of chunks the bases have together, as far as they are known here."""
    last = bases[-1] if bases else None
    ends = [segment.end_number for segment in last.segments] + [one.end_number for one in last.legacy] if last else []
    return last.start + max(ends, default=0) if last else 0


def _without(words: Mapping[str, Sequence[WordPostings]], hidden: Sequence[Range]) -> dict[str, list[WordPostings]]:
    """Leave out hidden chunks, and words that stand in no other."""
    shown: dict[str, list[WordPostings]] = {}
    for word, parts in words.items():
        for part in parts:
            is_shown = outside(part.places(), hidden)
            if is_shown.any():
                some = part._replace(numbers=part.numbers[is_shown], counts=part.counts[is_shown])
                shown.setdefault(word, []).append(some)
    return shown


def _rank(bases: Sequence[IndexedBase], read: _Read, limit: int, allowed: Allowed) -> _Ranked:
    corpus = _corpus_of(bases, read)
    statistics = Statistics(
        chunk_count=sum(base.chunk_count for base in bases),
        token_count=sum(base.token_count for base in bases),
        chunk_counts=corpus.counts(),
    )
    query = plan(corpus.words, statistics)
    if not query.terms:
        return _Ranked([], [], 0.0)
    places = find_led(corpus.words, query.leading, corpus.end)
    if allowed is not None:
        places = places[_mask(bases, allowed, corpus.end)[places]]
    led = (places, _find_lengths(bases, read, places))
    places, scores = score_best(corpus.words, led, query, statistics, limit)
    last = np.partition(scores, -limit)[-limit] if len(scores) > limit else 0.0
    above, tied = (_name(places[chosen], scores[chosen], bases) for chosen in (scores > last, scores == last))
    return _Ranked(above, tied, greatest_score(read.hashes, statistics))


def _mask(bases: Sequence[IndexedBase], allowed: Mapping[str, Sequence[Range]], length: int) -> NDArray[np.bool_]:
    """Return which places of `scores` hold chunks that may be found."""
    mask = np.zeros(length, bool)
    for base in bases:
        for one in allowed.get(base.id, ()):
            mask[base.start + one.first_number : base.start + one.end_number] = True
    return mask


def _name(places: NDArray[np.intp], scores: NDArray[np.float64], bases: Sequence[IndexedBase]) -> list[Found]:
    """Convert places into base ids and chunk numbers, each with its score."""
    starts = [base.start for base in bases]
    owners = [bases[bisect_right(starts, place) - 1] for place in places.tolist()]
    return [
        Found(owner.id, place - owner.start, score)
        for place, owner, score in zip(places.tolist(), owners, scores.tolist(), strict=True)
    ]
