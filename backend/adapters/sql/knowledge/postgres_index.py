"""BM25 on PostgreSQL: postings of our own, because `ts_rank` knows no word frequencies.

A row of `search_posting` holds one word's postings among 256 chunks of one base, packed. A row stays under the
2 kB beyond which PostgreSQL would move it out of the table.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, count, groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, TextClause, text

from backend.adapters.sql.aside import compute_aside
from backend.adapters.sql.knowledge.search_index import BaseSize, Found, NumberedEntry
from backend.domain.bm25 import K1, SCORE_DECIMALS, Query, Statistics, length_norm, looked_up_terms, plan

_CHUNKS_PER_ROW = 256
_POSTING = np.dtype([("number", "<u4"), ("count", "<u2"), ("length", "<u2")])
_MOST = 0xFFFF
"""Counts and lengths beyond it are kept as this; a chunk of 400 tokens has some hundreds."""

_COUNT_TERMS = text("""
    SELECT term, SUM(octet_length(postings)) FROM search_posting
    WHERE knowledge_base_id = ANY(CAST(:base_ids AS text[])) AND term = ANY(CAST(:terms AS text[])) GROUP BY term
""")
_READ = text("""
    SELECT knowledge_base_id, term, postings FROM search_posting
    WHERE knowledge_base_id = ANY(CAST(:base_ids AS text[])) AND term = ANY(CAST(:terms AS text[]))
""")
_APPEND = text("""
    INSERT INTO search_posting (knowledge_base_id, term, block, postings)
    SELECT :base_id, term, :block, postings FROM
        unnest(CAST(:terms AS text[]), CAST(:postings AS bytea[])) AS added (term, postings)
    ON CONFLICT (knowledge_base_id, term, block)
    DO UPDATE SET postings = search_posting.postings || excluded.postings
""")
_READ_BLOCK = text("""
    SELECT term, postings FROM search_posting
    WHERE knowledge_base_id = :base_id AND block = :block AND term = ANY(CAST(:terms AS text[]))
""")
_REPLACE = text("""
    UPDATE search_posting SET postings = changed.postings FROM
        unnest(CAST(:terms AS text[]), CAST(:postings AS bytea[])) AS changed (term, postings)
    WHERE knowledge_base_id = :base_id AND block = :block AND search_posting.term = changed.term
""")
_FORGET = text("""
    DELETE FROM search_posting
    WHERE knowledge_base_id = :base_id AND block = :block AND term = ANY(CAST(:terms AS text[]))
""")
_DROP = text("DELETE FROM search_posting WHERE knowledge_base_id = :base_id")
_FIRST_BY_TEXT = text("""
    SELECT wanted.place FROM
        unnest(CAST(:places AS integer[]), CAST(:base_ids AS text[]), CAST(:numbers AS integer[])) AS
        wanted (place, base_id, number)
    JOIN chunk ON chunk.knowledge_base_id = wanted.base_id AND chunk.number = wanted.number
    ORDER BY chunk.text COLLATE "C" LIMIT :limit
""")

_Rows = Mapping[str, bytes]
"""Packed postings by word, in one block of one base."""

_Postings = NDArray[Any]
_Scores = NDArray[np.float64]


class PostgresIndex:
    """The `SearchIndex` on packed postings; the scores of all chunks are summed here, with NumPy."""

    def open_base(self, connection: Connection, base_id: str) -> None:
        """Need nothing: rows come with the chunks."""

    def drop_base(self, connection: Connection, base_id: str) -> None:
        """Delete the base's postings."""
        connection.execute(_DROP, {"base_id": base_id})

    def add(self, connection: Connection, base_id: str, entries: Sequence[NumberedEntry]) -> None:
        """Append the chunks' postings to their words' rows."""
        for block, of_block in _by_block(entries):
            packed = compute_aside(connection, partial(_packed, of_block))
            _write_rows(connection, _APPEND, (base_id, block), packed)

    def remove(self, connection: Connection, base_id: str, entries: Sequence[NumberedEntry]) -> None:
        """Cut the chunks' postings out of their words' rows."""
        for block, of_block in _by_block(entries):
            place = {"base_id": base_id, "block": block}
            terms = sorted({term for _, entry in of_block for term in entry.tokens})
            rows = [(term, postings) for term, postings in connection.execute(_READ_BLOCK, {**place, "terms": terms})]
            kept = compute_aside(connection, partial(_without, rows, [number for number, _ in of_block]))
            connection.execute(_FORGET, {**place, "terms": [term for term, postings in kept.items() if not postings]})
            changed = {term: postings for term, postings in kept.items() if postings}
            _write_rows(connection, _REPLACE, (base_id, block), changed)

    def search(
        self, connection: Connection, sizes: Sequence[BaseSize], tokens: Sequence[str], limit: int
    ) -> list[Found]:
        """Score every chunk that has a word of the query, and name the best."""
        terms = looked_up_terms(tokens)
        base_ids = [size.base_id for size in sizes]
        counts = connection.execute(_COUNT_TERMS, {"base_ids": base_ids, "terms": list(terms)}).all()
        statistics = Statistics(
            chunk_count=sum(size.chunk_count for size in sizes),
            token_count=sum(size.index_token_count for size in sizes),
            chunk_counts={term: int(size) // _POSTING.itemsize for term, size in counts},
        )
        query = plan(terms, statistics)
        if not query.terms:
            return []
        starts = [0, *accumulate(size.next_chunk_number for size in sizes)]
        by_term = _read_postings(connection, query, dict(zip(base_ids, starts, strict=False)))
        scores = _sum_scores(by_term, query, statistics, starts[-1])
        return _name_best(connection, scores, (base_ids, starts), limit)


def _by_block(entries: Sequence[NumberedEntry]) -> Iterator[tuple[int, list[NumberedEntry]]]:
    """Group entries by the rows that they are in; a statement a block stays far below the time a statement has."""
    in_order = sorted(entries, key=itemgetter(0))
    for block, of_block in groupby(in_order, key=lambda one: one.number // _CHUNKS_PER_ROW):
        yield block, list(of_block)


def _write_rows(connection: Connection, statement: TextClause, place: tuple[str, int], rows: _Rows) -> None:
    if rows:
        base_id, block = place
        columns = {"terms": list(rows), "postings": list(rows.values())}
        connection.execute(statement, {"base_id": base_id, "block": block, **columns})


def _packed(entries: Sequence[NumberedEntry]) -> _Rows:
    """Make the postings of each word.

    A word in a chunk is the number of the word and the place of the chunk in one; sorted and counted they are the
    postings of one word after another, in one piece.
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
    cuts = (np.searchsorted(word_places, np.arange(len(words) + 1)) * _POSTING.itemsize).tolist()
    return {word: together[start:end] for word, start, end in zip(words, cuts, cuts[1:], strict=False)}


def _without(rows: Sequence[tuple[str, bytes]], gone: Sequence[int]) -> _Rows:
    """Return what is left of each word's postings; all rows at once, because NumPy's calls cost more than its work."""
    together = np.frombuffer(b"".join(postings for _, postings in rows), _POSTING)
    stays = ~np.isin(together["number"], np.array(gone, np.uint32))
    left = together[stays].tobytes()
    kept_before = np.concatenate(([0], np.cumsum(stays))) * _POSTING.itemsize
    ends = accumulate((len(postings) // _POSTING.itemsize for _, postings in rows), initial=0)
    cuts = kept_before[list(ends)].tolist()
    return {term: left[start:end] for (term, _), start, end in zip(rows, cuts, cuts[1:], strict=False)}


def _read_postings(connection: Connection, query: Query, starts: Mapping[str, int]) -> Mapping[str, _Postings]:
    """Return each word's postings in all bases, numbers counted through from base to base."""
    parts: dict[str, list[_Postings]] = {}
    for base_id, term, postings in connection.execute(_READ, {"base_ids": list(starts), "terms": list(query.terms)}):
        unpacked = np.frombuffer(postings, _POSTING).copy()
        unpacked["number"] += starts[base_id]
        parts.setdefault(term, []).append(unpacked)
    return {term: np.concatenate(of_term) for term, of_term in parts.items()}


def _sum_scores(by_term: Mapping[str, _Postings], query: Query, statistics: Statistics, size: int) -> _Scores:
    scores = np.zeros(size)
    is_led = np.zeros(size, bool)
    fixed, by_length = length_norm(statistics.mean_length)
    for term in query.terms:
        postings = by_term[term]
        count, length = postings["count"].astype(np.float64), postings["length"].astype(np.float64)
        scores[postings["number"]] += statistics.idf(term) * (K1 + 1) * (count / (count + (fixed + by_length * length)))
        if term in query.leading:
            is_led[postings["number"]] = True
    scores[~is_led] = 0.0
    return scores.round(SCORE_DECIMALS)


def _name_best(
    connection: Connection, scores: _Scores, bases: tuple[Sequence[str], Sequence[int]], limit: int
) -> list[Found]:
    """Name the chunks above the last score that counts, and of those that tie with it the first by text."""
    found = np.flatnonzero(scores)
    last = np.partition(scores[found], -limit)[-limit] if len(found) > limit else 0.0
    above, tied = np.flatnonzero(scores > last), np.flatnonzero((scores == last) & (scores > 0))
    named, equals = _named(above, scores, bases), _named(tied, scores, bases)
    if len(equals) > limit:
        wanted = {
            "places": list(range(len(equals))),
            "base_ids": [one.base_id for one in equals],
            "numbers": [one.number for one in equals],
            "limit": limit,
        }
        first: Sequence[int] = connection.execute(_FIRST_BY_TEXT, wanted).scalars().all()
        equals = [equals[place] for place in first]
    return named + equals


def _named(places: NDArray[np.intp], scores: _Scores, bases: tuple[Sequence[str], Sequence[int]]) -> list[Found]:
    """Turn places in `scores` into bases and numbers."""
    base_ids, starts = bases
    owners = [bisect_right(starts, int(place)) - 1 for place in places]
    return [
        Found(base_ids[owner], int(place) - starts[owner], float(scores[place]))
        for place, owner in zip(places, owners, strict=True)
    ]
