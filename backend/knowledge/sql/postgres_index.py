"""BM25 on PostgreSQL over tables of postings, because `ts_rank` uses no statistics of the whole collection.

A row of `search_posting` holds one word's postings among 256 chunks of one base, packed. A row stays under the
2 kB beyond which PostgreSQL would move it out of the table.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, TextClause, text

from backend.foundation.sql.database import compute_off_event_loop
from backend.knowledge.domain.bm25 import MAX_RANKED_TERMS, Statistics, looked_up_terms, plan
from backend.knowledge.domain.index_entries import IndexEntry
from backend.knowledge.sql.postings import (
    POSTING_BYTES,
    Rows,
    Scores,
    numbers_in,
    packed,
    sum_scores,
    unpacked,
    without,
    without_unseen,
)
from backend.knowledge.sql.search_index import (
    BaseSize,
    Found,
    NumberedEntry,
    WordCounts,
    base_size,
    statistics_of,
)

_CHUNKS_PER_ROW = 256

_COUNT_TERMS = text("""
    SELECT term, SUM(octet_length(postings)) FROM search_posting
    WHERE knowledge_base_id = ANY(CAST(:base_ids AS text[])) AND term = ANY(CAST(:terms AS text[])) GROUP BY term
""")
_COUNT_CHUNKS = text("""
    SELECT term, SUM(octet_length(postings)) FROM search_posting
    WHERE knowledge_base_id = :base_id AND term = ANY(CAST(:terms AS text[])) GROUP BY term
""")
_READ_POSTINGS = text("""
    SELECT term, string_agg(postings, '') FROM search_posting
    WHERE knowledge_base_id = :base_id AND term = ANY(CAST(:terms AS text[])) GROUP BY term
""")
_READ = text("""
    SELECT base.id, base.chunk_count, base.index_token_count, base.next_chunk_number, (
        SELECT CAST(json_agg(json_build_array(first_number, end_number, counted_to)) AS text) FROM unseen_edition
        WHERE knowledge_base_id = base.id
    ), found.term, found.postings
    FROM knowledge_base AS base LEFT JOIN LATERAL (
        SELECT term, string_agg(postings, '') AS postings FROM search_posting
        WHERE knowledge_base_id = base.id AND term = ANY(CAST(:terms AS text[])) GROUP BY term
    ) AS found ON true
    WHERE base.id = ANY(CAST(:base_ids AS text[])) AND base.chunk_count > 0 ORDER BY base.id
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


class PostgresIndex:
    """The `SearchIndex` on packed postings; the scores of all chunks are summed here, with NumPy."""

    chunks_per_step = _CHUNKS_PER_ROW

    def open_base(self, connection: Connection, base_id: str) -> None:
        """Do nothing: rows are added with the chunks."""

    def drop_base(self, connection: Connection, base_id: str) -> None:
        """Delete the base's postings."""
        connection.execute(_DROP, {"base_id": base_id})

    def add(self, connection: Connection, base_id: str, entries: Sequence[NumberedEntry]) -> None:
        """Append the chunks' postings to their words' rows."""
        for block, of_block in _by_block(entries):
            rows = compute_off_event_loop(connection, partial(packed, of_block))
            _write_rows(connection, _APPEND, (base_id, block), rows)

    def remove(self, connection: Connection, base_id: str, entries: Sequence[NumberedEntry]) -> None:
        """Cut the chunks' postings out of their words' rows."""
        for block, of_block in _by_block(entries):
            place = {"base_id": base_id, "block": block}
            terms = sorted({term for _, entry in of_block for term in entry.tokens})
            rows = [(term, postings) for term, postings in connection.execute(_READ_BLOCK, {**place, "terms": terms})]
            kept = compute_off_event_loop(connection, partial(without, rows, [number for number, _ in of_block]))
            connection.execute(_FORGET, {**place, "terms": [term for term, postings in kept.items() if not postings]})
            changed = {term: postings for term, postings in kept.items() if postings}
            _write_rows(connection, _REPLACE, (base_id, block), changed)

    def word_counts(self, entries: Sequence[IndexEntry]) -> WordCounts:
        """Return no counts: the length of a word's postings gives its count."""
        return ()

    def count_words(self, connection: Connection, base_id: str, counts: WordCounts) -> None:
        """Do nothing: there are no counts."""

    def discount_words(self, connection: Connection, base_id: str, counts: WordCounts) -> None:
        """Do nothing: there are no counts."""

    def search(self, connection: Connection, base_ids: Sequence[str], tokens: Sequence[str], limit: int) -> list[Found]:
        """Score every chunk that has a word of the query, and return the best."""
        terms = _ranked_terms(connection, base_ids, looked_up_terms(tokens))
        rows = connection.execute(_READ, {"base_ids": base_ids, "terms": list(terms)}).all()
        sizes = [base_size(row) for row in dict.fromkeys(row[:5] for row in rows)]
        starts = [0, *accumulate(size.next_chunk_number for size in sizes)]
        start_of = {size.base_id: start for size, start in zip(sizes, starts, strict=False)}
        found = ((term, start_of[base_id], packed) for base_id, *_, term, packed in rows if term)
        postings = without_unseen(unpacked(found), _unseen_places(sizes, starts))
        statistics = statistics_of(sizes, postings.word_counts)
        query = plan(terms, statistics)
        if not query.terms:
            return []
        scores = sum_scores(postings, query, statistics, starts[-1])
        return _name_best(connection, scores, (list(start_of), starts), limit)

    def chunk_counts(self, connection: Connection, base_id: str, tokens: Sequence[str]) -> Mapping[str, int]:
        """Derive the counts from the lengths of the postings."""
        found = connection.execute(_COUNT_CHUNKS, {"base_id": base_id, "terms": list(tokens)})
        return {term: size // POSTING_BYTES for term, size in found}

    def numbers(self, connection: Connection, base_id: str, tokens: Sequence[str]) -> Mapping[str, Collection[int]]:
        """Read the postings."""
        found = connection.execute(_READ_POSTINGS, {"base_id": base_id, "terms": list(tokens)})
        return {term: numbers_in(postings) for term, postings in found}


def _unseen_places(sizes: Sequence[BaseSize], starts: Sequence[int]) -> list[tuple[int, int]]:
    """Return the ranges of unseen chunks of all bases, with numbers that continue from base to base."""
    return [
        (start + unseen.first_number, start + unseen.end_number)
        for size, start in zip(sizes, starts, strict=False)
        for unseen in size.unseen
    ]


def _by_block(entries: Sequence[NumberedEntry]) -> Iterator[tuple[int, list[NumberedEntry]]]:
    """Group entries by their blocks of chunks; one statement per block stays far below the statement timeout."""
    in_order = sorted(entries, key=itemgetter(0))
    for block, of_block in groupby(in_order, key=lambda one: one.number // _CHUNKS_PER_ROW):
        yield block, list(of_block)


def _write_rows(connection: Connection, statement: TextClause, place: tuple[str, int], rows: Rows) -> None:
    if rows:
        base_id, block = place
        columns = {"terms": list(rows), "postings": list(rows.values())}
        connection.execute(statement, {"base_id": base_id, "block": block, **columns})


def _ranked_terms(connection: Connection, base_ids: Sequence[str], terms: Sequence[str]) -> Sequence[str]:
    """Choose the words to rank if there are very many; return fewer words unchanged, to be chosen once counted."""
    if len(terms) <= MAX_RANKED_TERMS:
        return terms
    sizes = connection.execute(_COUNT_TERMS, {"base_ids": base_ids, "terms": list(terms)})
    counts = {term: int(size) // POSTING_BYTES for term, size in sizes}
    return plan(terms, Statistics(chunk_count=0, token_count=0, chunk_counts=counts)).terms


def _name_best(
    connection: Connection, scores: Scores, bases: tuple[Sequence[str], Sequence[int]], limit: int
) -> list[Found]:
    """Return the chunks above the lowest score within the limit, and of those that tie with it the first by text."""
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


def _named(places: NDArray[np.intp], scores: Scores, bases: tuple[Sequence[str], Sequence[int]]) -> list[Found]:
    """Convert indexes of `scores` into base ids and chunk numbers."""
    base_ids, starts = bases
    owners = [bisect_right(starts, int(place)) - 1 for place in places]
    return [
        Found(base_ids[owner], int(place) - starts[owner], float(scores[place]))
        for place, owner in zip(places, owners, strict=True)
    ]
