"""Search over bases in SQL."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from backend.adapters.sql.database import Database
from backend.adapters.sql.knowledge import rows, tables
from backend.adapters.sql.knowledge.indexes import search_index
from backend.adapters.sql.knowledge.search_index import BaseSize, Found
from backend.domain.knowledge import Hit
from backend.domain.tokenizing import tokenize

_base = tables.knowledge_base
_document = tables.document
_chunk = tables.chunk


class SqlRetrieval:
    """The `Retrieval` over a `Database`, with the search index of its dialect."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._index = search_index(database)

    async def search(self, base_ids: Sequence[str], query: str, limit: int) -> tuple[Hit, ...]:
        """Return the best chunks, best first; equal scores are ordered by text."""
        tokens = tokenize(query[:MAX_QUERY_CHARACTERS])

        def work(connection: Connection) -> list[Hit]:
            sizes = _read_sizes(connection, base_ids)
            found = self._index.search(connection, sizes, tokens, limit) if sizes and tokens and limit > 0 else []
            return _read_hits(connection, _without_hopeless(found, limit))

        return tuple(sorted(await self._database.snapshot(work), key=_rank)[:limit])

    async def everything(self, base_ids: Sequence[str], token_limit: int) -> tuple[Hit, ...] | None:
        """Return all chunks when they measure at most `token_limit`, else None."""
        in_bases = _chunk.c.knowledge_base_id.in_(base_ids)

        def work(connection: Connection) -> list[Hit] | None:
            tokens = connection.execute(select(func.coalesce(func.sum(_chunk.c.tokens), 0)).where(in_bases)).scalar()
            if tokens is None or tokens > token_limit:
                return None
            return [rows.to_hit(row, 1.0) for row in connection.execute(_hits_where(in_bases)).mappings()]

        hits = await self._database.snapshot(work)
        return tuple(sorted(hits, key=_place)) if hits is not None else None


MAX_QUERY_CHARACTERS = 20_000
"""What stands beyond is not read; the words that count are far fewer."""


def _read_sizes(connection: Connection, base_ids: Sequence[str]) -> list[BaseSize]:
    query = select(_base.c.id, _base.c.chunk_count, _base.c.index_token_count, _base.c.next_chunk_number)
    found = connection.execute(query.where(_base.c.id.in_(base_ids), _base.c.chunk_count > 0).order_by(_base.c.id))
    return [BaseSize(*row) for row in found]


def _without_hopeless(found: Sequence[Found], limit: int) -> list[Found]:
    """Keep what may be among the first `limit`: ties are decided by texts that are yet to be read."""
    scores = sorted((one.score for one in found), reverse=True)
    lowest = scores[min(limit, len(scores)) - 1] if scores else 0.0
    return [one for one in found if one.score >= lowest]


def _read_hits(connection: Connection, found: Sequence[Found]) -> list[Hit]:
    if not found:
        return []
    scores = {(one.base_id, one.number): one.score for one in found}
    numbers: dict[str, list[int]] = {}
    for one in found:
        numbers.setdefault(one.base_id, []).append(one.number)
    # Base by base, because SQLite uses no index for a list of pairs.
    is_found = or_(
        *(and_(_chunk.c.knowledge_base_id == base, _chunk.c.number.in_(of_base)) for base, of_base in numbers.items())
    )
    return [
        rows.to_hit(row, scores[row["knowledge_base_id"], row["number"]])
        for row in connection.execute(_hits_where(is_found)).mappings()
    ]


def _hits_where(condition: ColumnElement[bool]) -> Select[Any]:
    return (
        select(*rows.HIT_COLUMNS).join_from(_chunk, _document, _chunk.c.document_id == _document.c.id).where(condition)
    )


def _rank(hit: Hit) -> tuple[object, ...]:
    return (-hit.score, hit.chunk.text, hit.document_name, hit.chunk.ordinal)


def _place(hit: Hit) -> tuple[object, ...]:
    return (hit.knowledge_base_id, hit.document_name, hit.chunk.ordinal)
