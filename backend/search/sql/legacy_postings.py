"""Reading the search index of the release before, for documents that are in no segment yet."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from backend.foundation.sql.database import compute_off_event_loop
from backend.foundation.sql.statements import driver_of
from backend.search.domain.chunks import Range
from backend.search.sql.legacy_index import has_table, table_of
from backend.search.sql.word_postings import LegacyPostings, WordPostings, inside

_POSTING = np.dtype([("number", "<u4"), ("count", "<u2"), ("length", "<u2")])
_READ_POSTINGS = text("""
    SELECT term, string_agg(postings, '') FROM search_posting
    WHERE knowledge_base_id = :base_id AND term = ANY(CAST(:terms AS text[])) GROUP BY term
""")


def legacy_postings(
    connection: Connection, base_id: str, terms: Sequence[str], among: Sequence[Range]
) -> LegacyPostings:
    """Return the postings of words in the chunks of these ranges."""
    read = _from_rows if connection.dialect.is_async else _from_table
    return read(connection, base_id, terms, among)


def _from_rows(connection: Connection, base_id: str, terms: Sequence[str], among: Sequence[Range]) -> LegacyPostings:
    rows = connection.execute(_READ_POSTINGS, {"base_id": base_id, "terms": list(terms)}).all()
    found = {term: np.frombuffer(packed, _POSTING) for term, packed in rows}
    return compute_off_event_loop(connection, partial(_unpack, found, among))


def _unpack(found: Mapping[str, NDArray[Any]], among: Sequence[Range]) -> LegacyPostings:
    kept = {term: rows[inside(rows["number"].astype(np.int64), among)] for term, rows in found.items()}
    together = np.concatenate([np.empty(0, _POSTING), *kept.values()])
    return LegacyPostings(
        {
            term: WordPostings(0, rows["number"].astype(np.int64), rows["count"])
            for term, rows in kept.items()
            if len(rows)
        },
        together["number"].astype(np.int64),
        together["length"].astype(np.int64),
    )


def _from_table(connection: Connection, base_id: str, terms: Sequence[str], among: Sequence[Range]) -> LegacyPostings:
    if not terms or not has_table(connection, base_id):
        return LegacyPostings({}, np.empty(0, np.int64), np.empty(0, np.int64))
    table, wanted = table_of(base_id), frozenset(terms)
    finding = f"SELECT rowid, tokens FROM {table} WHERE {table} MATCH ? ORDER BY rowid"  # noqa: S608
    match = " OR ".join(f'"{term}"' for term in terms)
    rows: list[tuple[int, list[str]]] = [
        (number, tokens.split()) for number, tokens in driver_of(connection).execute(finding, (match,))
    ]
    numbers = np.array([number for number, _ in rows], np.int64)
    kept = [row for row, is_kept in zip(rows, inside(numbers, among).tolist(), strict=True) if is_kept]
    by_word: dict[str, list[tuple[int, int]]] = {}
    for number, tokens in kept:
        for word, times in Counter(filter(wanted.__contains__, tokens)).items():
            by_word.setdefault(word, []).append((number, times))
    return LegacyPostings(
        {word: _columns(found) for word, found in by_word.items()},
        np.array([number for number, _ in kept], np.int64),
        np.array([len(tokens) for _, tokens in kept], np.int64),
    )


def _columns(found: Sequence[tuple[int, int]]) -> WordPostings:
    together = np.fromiter(chain.from_iterable(found), np.int64, 2 * len(found)).reshape(-1, 2)
    return WordPostings(0, together[:, 0], together[:, 1].astype(np.uint16))
