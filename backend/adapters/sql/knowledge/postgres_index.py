"""BM25 on PostgreSQL: postings of our own, because `ts_rank` knows no word frequencies.

A row of `search_posting` holds one word's postings among 256 chunks of one base, packed. A row stays under the
2 kB beyond which PostgreSQL would move it out of the table.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, text

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
    SELECT :base_id, term, block, postings FROM
        unnest(CAST(:terms AS text[]), CAST(:blocks AS integer[]), CAST(:postings AS bytea[])) AS
        added (term, block, postings)
    ON CONFLICT (knowledge_base_id, term, block)
    DO UPDATE SET postings = search_posting.postings || excluded.postings
""")
_READ_BLOCKS = text("""
    SELECT term, block, postings FROM search_posting WHERE knowledge_base_id = :base_id
    AND term = ANY(CAST(:terms AS text[])) AND block = ANY(CAST(:blocks AS integer[]))
""")
_REPLACE = text("""
    UPDATE search_posting SET postings = changed.postings FROM
        unnest(CAST(:terms AS text[]), CAST(:blocks AS integer[]), CAST(:postings AS bytea[])) AS
        changed (term, block, postings)
    WHERE knowledge_base_id = :base_id AND search_posting.term = changed.term AND search_posting.block = changed.block
""")
_FORGET_EMPTY = text("""
    DELETE FROM search_posting WHERE knowledge_base_id = :base_id AND term = ANY(CAST(:terms AS text[]))
    AND block = ANY(CAST(:blocks AS integer[])) AND postings = ''
""")
_DROP = text("DELETE FROM search_posting WHERE knowledge_base_id = :base_id")
_FIRST_BY_TEXT = text("""
    SELECT wanted.place FROM
        unnest(CAST(:places AS integer[]), CAST(:base_ids AS text[]), CAST(:numbers AS integer[])) AS
        wanted (place, base_id, number)
    JOIN chunk ON chunk.knowledge_base_id = wanted.base_id AND chunk.number = wanted.number
    ORDER BY chunk.text COLLATE "C" LIMIT :limit
""")

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
        packed: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        for number, entry in entries:
            length = min(len(entry.tokens), _MOST)
            for term, count in entry.counts.items():
                posting = (number, min(count, _MOST), length)
                packed.setdefault((term, number // _CHUNKS_PER_ROW), []).append(posting)
        rows = {place: np.array(postings, _POSTING).tobytes() for place, postings in packed.items()}
        if rows:
            connection.execute(_APPEND, _columns(base_id, rows))

    def remove(self, connection: Connection, base_id: str, entries: Sequence[NumberedEntry]) -> None:
        """Cut the chunks' postings out of their words' rows."""
        gone = np.array([number for number, _ in entries], np.uint32)
        terms = sorted({term for _, entry in entries for term in entry.tokens})
        if not terms:
            return
        blocks = sorted({number // _CHUNKS_PER_ROW for number, _ in entries})
        place = {"base_id": base_id, "terms": terms, "blocks": blocks}
        rows = {
            (term, block): _without(postings, gone)
            for term, block, postings in connection.execute(_READ_BLOCKS, place).all()
        }
        connection.execute(_REPLACE, _columns(base_id, rows))
        connection.execute(_FORGET_EMPTY, place)

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


def _columns(base_id: str, rows: Mapping[tuple[str, int], bytes]) -> dict[str, object]:
    return {
        "base_id": base_id,
        "terms": [term for term, _ in rows],
        "blocks": [block for _, block in rows],
        "postings": list(rows.values()),
    }


def _without(postings: bytes, gone: NDArray[np.uint32]) -> bytes:
    unpacked = np.frombuffer(postings, _POSTING)
    return unpacked[~np.isin(unpacked["number"], gone)].tobytes()


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
