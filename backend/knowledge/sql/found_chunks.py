"""Parts of every search of chunks: the filter over numbers of chunks, and the chunks behind found numbers."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, select

from backend.foundation.sql.database import compute_off_event_loop
from backend.foundation.sql.parameters import Dialect, is_among, list_parameter
from backend.foundation.sql.statements import Statement
from backend.knowledge.sql import rows, tables
from backend.knowledge.sql.search_index import Found, Range
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Filter, matches

_document, _chunk = tables.document, tables.chunk


def hits_where(condition: ColumnElement[bool]) -> Select[tuple[object, ...]]:
    """Return the query of the chunks of documents for which a condition holds."""
    of_base = _chunk.c.knowledge_base_id == _document.c.knowledge_base_id
    query = select(*rows.HIT_COLUMNS).join_from(_chunk, _document, rows.IS_OF_DOCUMENT & of_base)
    return _with_shown(query.where(condition))


def _with_shown(query: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
    """Let SQLite read documents from their index alone; by itself it takes the one that needs the table as well."""
    return query.with_hint(_document, "INDEXED BY ix_document_shown", "sqlite")


class ChunkRows:
    """Reads chunks by base and number; those that no document has are not found."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._find_hits = Statement(hits_where(rows.are_numbered_chunks(dialect)))
        of_bases = is_among(_document.c.knowledge_base_id, "ids", dialect) & (_document.c.chunk_count > 0)
        shown = (_document.c[name] for name in ("knowledge_base_id", "attributes", "chunk_count"))
        self._find_attributes = Statement(_with_shown(select(*shown, rows.FIRST_NUMBER).where(of_bases)))

    def allowed(self, connection: Connection, base_ids: Sequence[str], filters: Filter) -> dict[str, list[Range]]:
        """Return by base the chunks of the documents whose attributes pass the filters."""
        found = self._find_attributes.rows(connection, {"ids": list_parameter(base_ids, self._dialect)})

        def work() -> dict[str, list[Range]]:
            allowed: dict[str, list[Range]] = {}
            for row in found:
                if matches(filters, rows.to_mapping(row["attributes"])):
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
            rows.to_hit(row, scores[base_id, row["number"]])
            for base_id, of_base in numbers.items()
            for row in self._find_hits.rows(
                connection, {"base_id": base_id, "numbers": list_parameter(of_base, self._dialect)}
            )
        ]
