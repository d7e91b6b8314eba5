"""Parts of every search of chunks: the filter over numbers of chunks, and the chunks behind found numbers."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, bindparam, select

from backend.foundation.sql.database import compute_off_event_loop
from backend.foundation.sql.parameters import Dialect, is_among, list_parameter
from backend.foundation.sql.statements import Row, Statement
from backend.search.domain.chunks import STORED_FIELDS, ChunkHit, Found, Range, attributes_in, chunk_in
from backend.search.domain.filters import Filter, matches
from backend.search.sql import tables

_document, _chunk = tables.document, tables.chunk

IS_OF_DOCUMENT = _chunk.c.edition_id == _document.c.edition_id
"""Joins chunks to documents; chunks of editions that are being written or deleted belong to no document."""

CHUNK_COLUMNS = [_chunk.c[name] for name in STORED_FIELDS]
_HIT_COLUMNS = [
    *CHUNK_COLUMNS,
    _document.c.id.label("document_id"),
    _chunk.c.knowledge_base_id,
    _document.c.name.label("document_name"),
    *(_document.c[name] for name in ("file_id", "filename", "attributes", "sha256")),
]

FIRST_NUMBER = (
    select(_chunk.c.number)
    .where(IS_OF_DOCUMENT, _chunk.c.ordinal == 0)
    .correlate(_document)
    .scalar_subquery()
    .label("number")
)
"""The number of the first chunk of a document that has any; the others follow it.

A query of its own is asked for each document: PostgreSQL would read all chunks to join those of documents that it takes
for many.
"""


def are_numbered_chunks(dialect: Dialect) -> ColumnElement[bool]:
    """Select chunks of the base `:base_id` by the list `:numbers` of their numbers."""
    numbers = is_among(_chunk.c.number, "numbers", dialect)
    return (_chunk.c.knowledge_base_id == bindparam("base_id")) & numbers


def hits_where(condition: ColumnElement[bool]) -> Select[tuple[object, ...]]:
    """Return the query of the chunks of documents for which a condition holds."""
    of_base = _chunk.c.knowledge_base_id == _document.c.knowledge_base_id
    query = select(*_HIT_COLUMNS).join_from(_chunk, _document, IS_OF_DOCUMENT & of_base)
    return _with_shown(query.where(condition))


def _with_shown(query: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
    """Let SQLite read documents from their index alone; by itself it takes the one that needs the table as well."""
    return query.with_hint(_document, "INDEXED BY ix_document_shown", "sqlite")


class ChunkRows:
    """Reads chunks by base and number; those that no document has are not found."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._find_hits = Statement(hits_where(are_numbered_chunks(dialect)))
        of_bases = is_among(_document.c.knowledge_base_id, "ids", dialect) & (_document.c.chunk_count > 0)
        shown = (_document.c[name] for name in ("knowledge_base_id", "attributes", "chunk_count"))
        self._find_attributes = Statement(_with_shown(select(*shown, FIRST_NUMBER).where(of_bases)))

    def find_allowed(self, connection: Connection, base_ids: Sequence[str], filters: Filter) -> dict[str, list[Range]]:
        """Return by base the chunks of the documents whose attributes pass the filters."""
        found = self._find_attributes.rows(connection, {"ids": list_parameter(base_ids, self._dialect)})

        def work() -> dict[str, list[Range]]:
            allowed: dict[str, list[Range]] = {}
            for row in found:
                if matches(filters, attributes_in(row["attributes"])):
                    chunks = Range(row["number"], row["number"] + row["chunk_count"])
                    allowed.setdefault(row["knowledge_base_id"], []).append(chunks)
            return allowed

        return compute_off_event_loop(connection, work)

    def hits(self, connection: Connection, found: Sequence[Found]) -> list[ChunkHit]:
        """Return the chunks that were found, in no order."""
        scores = {(one.base_id, one.number): one.score for one in found}
        numbers: dict[str, list[int]] = {}
        for one in found:
            numbers.setdefault(one.base_id, []).append(one.number)
        # Base by base, because SQLite uses no index for a list of pairs.
        return [
            to_hit(row, scores[base_id, row["number"]])
            for base_id, of_base in numbers.items()
            for row in self._find_hits.rows(
                connection, {"base_id": base_id, "numbers": list_parameter(of_base, self._dialect)}
            )
        ]


def to_hit(row: Row | RowMapping, score: float) -> ChunkHit:
    """Read a chunk with the names around it."""
    return ChunkHit(
        knowledge_base_id=row["knowledge_base_id"],
        document_id=row["document_id"],
        document_name=row["document_name"],
        chunk=chunk_in(row, row["document_id"]),
        score=score,
        file_id=row["file_id"],
        filename=row["filename"],
        attributes=attributes_in(row["attributes"]),
        sha256=row["sha256"],
    )
