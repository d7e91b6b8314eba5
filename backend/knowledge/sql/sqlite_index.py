"""BM25 on SQLite: one FTS5 table per base finds candidates, which are then scored over all searched bases.

FTS5 counts words per table, so a table per base makes its scores independent of all other bases. The `bm25()` of
FTS5 has other constants (https://www.sqlite.org/fts5.html#the_bm25_function) and covers one base only: it is used to
choose candidates, far more than are asked for.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain

import orjson
from sqlalchemy import Connection

from backend.foundation.sql.statements import driver_of
from backend.knowledge.domain.bm25 import Query, Scorer, looked_up_terms, plan
from backend.knowledge.domain.index_entries import IndexEntry
from backend.knowledge.sql.search_index import (
    BaseSize,
    Found,
    NumberedEntry,
    UnseenRange,
    WordCounts,
    base_size,
    statistics_of,
)
from backend.knowledge.sql.tables import SEARCH_PREFIX

_CANDIDATES = 64
_SPARE = 2
"""A search scores 64 candidates of all bases together, but of each base at least two more than are asked for."""

_FIND_SIZES = """
    SELECT id, chunk_count, index_token_count, next_chunk_number, (
        SELECT json_group_array(json_array(first_number, end_number, counted_to)) FROM unseen_edition
        WHERE knowledge_base_id = knowledge_base.id
    ) FROM knowledge_base
    WHERE id IN (SELECT value FROM json_each(?)) AND chunk_count > 0 ORDER BY id
"""
_COUNT_TERMS = """
    SELECT term, knowledge_base_id, chunk_count FROM search_term
    WHERE knowledge_base_id IN (SELECT value FROM json_each(?)) AND term IN (SELECT value FROM json_each(?))
"""
# One statement takes less than half the time of one per word. `WHERE true` keeps ON CONFLICT from parsing as a join.
_ADD_TO_TERMS = """
    INSERT INTO search_term (knowledge_base_id, term, chunk_count) SELECT ?, key, value FROM json_each(?) WHERE true
    ON CONFLICT DO UPDATE SET chunk_count = chunk_count + excluded.chunk_count
"""
_TAKE_FROM_TERM = "UPDATE search_term SET chunk_count = chunk_count - ? WHERE knowledge_base_id = ? AND term = ?"
_FORGET_TERM = "DELETE FROM search_term WHERE knowledge_base_id = ? AND term = ? AND chunk_count = 0"

_PENDING_BYTES = 4 * 1024 * 1024
"""How much FTS5 buffers before it writes: a document of some hundred chunks is one write, without a merge."""

_BLANK = " "


class SqliteIndex:
    """The `SearchIndex` on FTS5.

    Tokens hold no ASCII but letters and digits, and FTS5's `ascii` tokenizer takes all other characters as
    parts of words: tokens are indexed unchanged.
    """

    chunks_per_step = 32

    def open_base(self, connection: Connection, base_id: str) -> None:
        """Make the base's full-text table."""
        table = _table(base_id)
        connection.exec_driver_sql(f"CREATE VIRTUAL TABLE {table} USING fts5(tokens, tokenize='ascii')")
        connection.exec_driver_sql(f"INSERT INTO {table} ({table}, rank) VALUES ('hashsize', {_PENDING_BYTES})")  # noqa: S608

    def drop_base(self, connection: Connection, base_id: str) -> None:
        """Drop the base's full-text table and word counts."""
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {_table(base_id)}")
        connection.exec_driver_sql("DELETE FROM search_term WHERE knowledge_base_id = ?", (base_id,))

    def add(self, connection: Connection, base_id: str, entries: Sequence[NumberedEntry]) -> None:
        """Index chunks under their numbers."""
        rows = [(number, _BLANK.join(entry.tokens)) for number, entry in entries]
        driver_of(connection).executemany(f"INSERT INTO {_table(base_id)} (rowid, tokens) VALUES (?, ?)", rows)  # noqa: S608

    def remove(self, connection: Connection, base_id: str, entries: Sequence[NumberedEntry]) -> None:
        """Remove chunks by their numbers."""
        numbers = [(number,) for number, _ in entries]
        driver_of(connection).executemany(f"DELETE FROM {_table(base_id)} WHERE rowid = ?", numbers)  # noqa: S608

    def word_counts(self, entries: Sequence[IndexEntry]) -> WordCounts:
        """Count the chunks of each word.

        Words are sorted in small groups: sorting a hundred thousand at once would block every other thread.
        """
        counts = Counter(chain.from_iterable(set(entry.tokens) for entry in entries))
        heaps: dict[str, list[str]] = {}
        for term in counts:
            heaps.setdefault(term[0], []).append(term)
        return [(term, counts[term]) for first in sorted(heaps) for term in sorted(heaps[first])]

    def count_words(self, connection: Connection, base_id: str, counts: WordCounts) -> None:
        """Add to the counts of the base."""
        driver_of(connection).execute(_ADD_TO_TERMS, (base_id, orjson.dumps(dict(counts)).decode()))

    def discount_words(self, connection: Connection, base_id: str, counts: WordCounts) -> None:
        """Subtract from the counts of the base; a word that no chunk has any more is deleted."""
        driver = driver_of(connection)
        driver.executemany(_TAKE_FROM_TERM, [(count, base_id, term) for term, count in counts])
        driver.executemany(_FORGET_TERM, [(base_id, term) for term, _ in counts])

    def search(self, connection: Connection, base_ids: Sequence[str], tokens: Sequence[str], limit: int) -> list[Found]:
        """Score the candidates of every base."""
        sizes = _read_sizes(connection, base_ids)
        if not sizes:
            return []
        terms = looked_up_terms(tokens)
        bases_by_term = _count_terms(connection, sizes, terms)
        statistics = statistics_of(sizes, {term: sum(bases.values()) for term, bases in bases_by_term.items()})
        query = plan(terms, statistics)
        scorer, ranked = Scorer(query, statistics), frozenset(query.terms)
        per_base = max(limit + _SPARE, _CANDIDATES // len(sizes))
        return [
            Found(size.base_id, number, _score(scorer, ranked, text))
            for size in sizes
            for number, text in _candidates(
                connection, size, _words_here(query, bases_by_term, size), (limit, per_base)
            )
        ]

    def chunk_counts(self, connection: Connection, base_id: str, tokens: Sequence[str]) -> Mapping[str, int]:
        """Read the counts that searches need."""
        parameters = (_json_list([base_id]), _json_list(tokens))
        return {term: count for term, _, count in driver_of(connection).execute(_COUNT_TERMS, parameters)}

    def numbers(self, connection: Connection, base_id: str, tokens: Sequence[str]) -> Mapping[str, Collection[int]]:
        """Query the full-text table for each token."""
        finding = f"SELECT rowid FROM {_table(base_id)} WHERE {_table(base_id)} MATCH ?"  # noqa: S608
        driver = driver_of(connection)
        return {token: [number for (number,) in driver.execute(finding, (f'"{token}"',))] for token in tokens}


def _table(base_id: str) -> str:
    """Quote the name of a base's table: ids are ours, and no id can break out of the quotes."""
    return '"' + (SEARCH_PREFIX + base_id).replace('"', '""') + '"'


def _read_sizes(connection: Connection, base_ids: Sequence[str]) -> list[BaseSize]:
    return [base_size(row) for row in driver_of(connection).execute(_FIND_SIZES, (_json_list(base_ids),))]


def _count_terms(
    connection: Connection, sizes: Sequence[BaseSize], terms: Sequence[str]
) -> Mapping[str, Mapping[str, int]]:
    """Return the number of chunks in each base, by word."""
    unseen = {size.base_id: size.unseen for size in sizes}
    counts: dict[str, dict[str, int]] = {}
    parameters = (_json_list(list(unseen)), _json_list(terms))
    for term, base_id, count in driver_of(connection).execute(_COUNT_TERMS, parameters):
        seen = count - sum(_count_in(connection, base_id, term, hidden) for hidden in unseen[base_id])
        if seen:
            counts.setdefault(term, {})[base_id] = seen
    return counts


def _count_in(connection: Connection, base_id: str, term: str, unseen: UnseenRange) -> int:
    """Return in how many chunks of a range a word was counted."""
    if term > unseen.counted_to:
        return 0
    table = _table(base_id)
    counting = f"SELECT COUNT(*) FROM {table} WHERE {table} MATCH ? AND rowid >= ? AND rowid < ?"  # noqa: S608
    parameters = (f'"{term}"', unseen.first_number, unseen.end_number)
    return driver_of(connection).execute(counting, parameters).fetchone()[0]


def _json_list(values: Sequence[str]) -> str:
    return orjson.dumps(values).decode()


def _words_here(query: Query, bases_by_term: Mapping[str, Mapping[str, int]], size: BaseSize) -> list[str]:
    return [term for term in query.leading if size.base_id in bases_by_term[term]]


def _candidates(
    connection: Connection, size: BaseSize, words: Sequence[str], least_and_most: tuple[int, int]
) -> list[tuple[int, str]]:
    """Return numbers and tokens of the best chunks of a base.

    The choice does not depend on the order of storing: chunks that tie are all taken, or none, or the first by text.
    """
    least, most = least_and_most
    if not words:
        return []
    match = " OR ".join(f'"{word}"' for word in words)
    rows = _read_best(connection, size, match, "rowid", most + 1)
    if len(rows) > most:
        last = max(badness for badness, _, _ in rows)
        better = [row for row in rows if row[0] < last]
        by_text = _text_of(size.base_id)
        rows = better if len(better) >= least else _read_best(connection, size, match, by_text, least)
    return [(number, tokens) for _, number, tokens in rows]


def _read_best(
    connection: Connection, size: BaseSize, match: str, second_order: str, limit: int
) -> list[tuple[float, int, str]]:
    table = _table(size.base_id)
    is_seen = "".join(f" AND rowid NOT BETWEEN {one.first_number} AND {one.end_number - 1}" for one in size.unseen)
    rows = driver_of(connection).execute(
        f"""
        WITH best AS MATERIALIZED (
            SELECT rowid AS number, bm25({table}) AS badness FROM {table} WHERE {table} MATCH ?{is_seen}
            ORDER BY badness, {second_order} LIMIT ?
        )
        SELECT best.badness, best.number, content.tokens
        FROM best JOIN {table} AS content ON content.rowid = best.number
        """,  # noqa: S608
        (match, limit),
    )
    return rows.fetchall()


def _text_of(base_id: str) -> str:
    literal = base_id.replace("'", "''")
    return f"(SELECT text FROM chunk WHERE knowledge_base_id = '{literal}' AND chunk.number = {_table(base_id)}.rowid)"  # noqa: S608


def _score(scorer: Scorer, terms: frozenset[str], text: str) -> float:
    tokens = text.split(_BLANK)
    return scorer.score(Counter(filter(terms.__contains__, tokens)), len(tokens))
