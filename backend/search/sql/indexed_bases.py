"""The state of the searched bases, read by one statement in one round trip before any postings."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    TableClause,
    Text,
    bindparam,
    literal_column,
    null,
    select,
    union_all,
)

from backend.foundation.sql.parameters import Dialect, is_among, list_parameter
from backend.foundation.sql.statements import Row, Statement
from backend.search.domain.chunks import Range
from backend.search.sql import tables
from backend.search.sql.chunk_rows import FIRST_NUMBER
from backend.search.sql.segment_rows import IndexSegment
from backend.search.sql.tables import IS_CHANGED, IS_UNINDEXED, UNINDEXED_HINT
from backend.search.sql.word_postings import gaps

_base, _document, _chunk = tables.knowledge_base, tables.document, tables.chunk
_segment, _gone, _unseen = tables.index_segment, tables.index_gone, tables.unseen_edition

_SIZES = ("id", "chunk_count", "index_token_count", "next_chunk_number")
_PART_COLUMNS = ("first_number", "end_number", "segment_id", "size", "bits", "touched_at")


class IndexedBase(NamedTuple):
    """A base that is searched: where its chunks stand among those of all, and what is to be known of them."""

    id: str
    start: int
    chunk_count: int
    token_count: int
    segments: list[IndexSegment]
    hidden: list[Range]
    legacy: list[Range]


class BaseReader:
    """Reads the sizes of bases, their visible segments, and the numbers of chunks that no reader may see."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        among = partial(is_among, name="ids", dialect=dialect)
        parts = union_all(
            _part("segment", _segment, segment_id=_segment.c.id, size=_segment.c.chunk_count).where(
                among(_segment.c.knowledge_base_id), _segment.c.is_visible
            ),
            _part("hidden", _unseen).where(among(_unseen.c.knowledge_base_id)),
            _part("hidden", _gone).where(among(_gone.c.knowledge_base_id)),
            _part("legacy", _document, first_number=FIRST_NUMBER, size=_document.c.chunk_count)
            .where(among(_document.c.knowledge_base_id), _document.c.chunk_count > 0, IS_UNINDEXED)
            .with_hint(_document, UNINDEXED_HINT, "sqlite"),
        ).subquery("part")
        self._bases = Statement(
            select(*(_base.c[name] for name in _SIZES), IS_CHANGED.label("is_changed"), *parts.c)
            .outerjoin_from(_base, parts, parts.c.base_id == _base.c.id)
            .where(among(_base.c.id), _base.c.chunk_count > 0)
            .order_by(_base.c.id, parts.c.first_number)
        )
        self._numbers = Statement(
            select(_chunk.c.number).where(_chunk.c.knowledge_base_id == bindparam("base_id")).order_by(_chunk.c.number)
        )

    def read(self, connection: Connection, base_ids: Sequence[str]) -> list[IndexedBase]:
        """Return those of the bases that have chunks."""
        bases: dict[str, IndexedBase] = {}
        changed: set[str] = set()
        start = 0
        for row in self._bases.rows(connection, {"ids": list_parameter(base_ids, self._dialect)}):
            base_id = row["id"]
            if base_id not in bases:
                bases[base_id] = IndexedBase(base_id, start, row["chunk_count"], row["index_token_count"], [], [], [])
                start += row["next_chunk_number"]
            if row["is_changed"]:
                changed.add(base_id)
            _add(bases[base_id], row)
        for base_id in changed:
            base = bases[base_id]
            if base.segments:
                within = Range(base.segments[0].first_number, base.segments[-1].end_number)
                base.hidden.extend(self._find_deleted(connection, base_id, within))
        return list(bases.values())

    def _find_deleted(self, connection: Connection, base_id: str, within: Range) -> list[Range]:
        """Return the numbers without chunks; the upkeep of the index soon notes those that are in segments."""
        found = (row["number"] for row in self._numbers.rows(connection, {"base_id": base_id}))
        numbers = np.fromiter(found, np.int64)
        return gaps(numbers[(numbers >= within.first_number) & (numbers < within.end_number)], within)


def _part(kind: str, table: Table | TableClause, **others: ColumnElement[Any]) -> Select[*tuple[Any, ...]]:
    """Return the query of a part of bases; what it does not have is NULL."""
    columns: dict[str, ColumnElement[Any]] = {**dict(table.c.items()), **others}
    absent: ColumnElement[Any] = null()
    shown: list[ColumnElement[Any]] = [columns.get(name, absent).label(name) for name in _PART_COLUMNS]
    return select(
        columns["knowledge_base_id"].label("base_id"), literal_column(f"'{kind}'", Text()).label("kind"), *shown
    )


def _add(base: IndexedBase, row: Row) -> None:
    first, end, size = row["first_number"], row["end_number"], row["size"]
    match row["kind"]:
        case "segment":
            found = IndexSegment(row["segment_id"], base.id, first, end, size, row["bits"], row["touched_at"])
            base.segments.append(found)
        case "hidden":
            base.hidden.append(Range(first, end))
        case "legacy":
            base.legacy.append(Range(first, first + size))
        case _:  # a base of which nothing more is to be known
            pass
