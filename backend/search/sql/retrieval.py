"""Search over bases in SQL."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, func, select

from backend.foundation.sql.database import Database
from backend.foundation.sql.parameters import is_among, list_parameter
from backend.foundation.sql.statements import Statement
from backend.search.domain.bm25 import find_looked_up_terms
from backend.search.domain.chunks import ChunkHit, Found
from backend.search.domain.filters import Filter
from backend.search.domain.fusion import content_rank, score_by_words
from backend.search.sql import tables
from backend.search.sql.chosen import choose_index
from backend.search.sql.chunk_rows import ChunkRows, hits_where, to_hit

_document = tables.document
_named = _document.alias("named")
"""A document by its id: what the index of shown columns begins with stands before its body."""

_chunk = tables.chunk
_DOCUMENTS_AT_ONCE = 6
"""How many documents are read in one statement; mostly they have as many chunks as are wanted."""


class SqlRetrieval:
    """The `Retrieval` over a `Database`; `loaded` gives the index of words, with what it keeps in memory."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.loaded = choose_index(database)
        self._chunks = ChunkRows(database.dialect)
        is_named = (_document.c.knowledge_base_id == _named.c.knowledge_base_id) & (
            _document.c.edition_id == _named.c.edition_id
        )
        is_of_these = is_among(_named.c.id, "ids", database.dialect) & is_named
        is_seen = _chunk.c.edition_id.not_in(select(tables.unseen_edition.c.edition_id))
        # Base by base in order of number, which an index has: else the first chunks may be sought among those of all.
        of_base = (_chunk.c.knowledge_base_id == bindparam("base_id")) & is_seen
        first = select(_chunk.c.tokens).where(of_base).order_by(_chunk.c.number).limit(bindparam("chunks")).subquery()
        self._measured = Statement(select(func.coalesce(func.sum(first.c.tokens), 0).label("tokens")))
        self._find_beginnings = Statement(hits_where(is_of_these & (_chunk.c.ordinal < bindparam("behind"))))

    async def search(
        self, base_ids: Sequence[str], query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Return the best chunks, best first; equal scores are ordered by text."""
        terms = find_looked_up_terms(query)
        index = await self.loaded()

        def work(connection: Connection) -> tuple[list[ChunkHit], float]:
            if not base_ids or not terms or limit <= 0:
                return [], 0.0
            allowed = None if filters is None else self._chunks.find_allowed(connection, base_ids, filters)
            found = index.search(connection, base_ids, terms, limit, allowed)
            return self._chunks.hits(connection, _possible(found.chunks, limit)), found.greatest_score

        hits, greatest_score = await self._database.snapshot(work)
        return tuple(score_by_words(hit, greatest_score) for hit in sorted(hits, key=content_rank)[:limit])

    async def read_all(self, base_ids: Sequence[str], token_limit: int) -> tuple[ChunkHit, ...] | None:
        """Return all chunks when they measure at most `token_limit`, else None."""
        base = tables.knowledge_base
        are_asked = base.c.id.in_(base_ids) & (base.c.chunk_count > 0)
        in_bases = _chunk.c.knowledge_base_id.in_(select(base.c.id).where(are_asked))

        def measure(connection: Connection, found: Sequence[str], chunks: int) -> int:
            asked = ({"base_id": base_id, "chunks": chunks} for base_id in found)
            return sum(row["tokens"] for each in asked for row in self._measured.rows(connection, each))

        def work(connection: Connection) -> list[ChunkHit] | None:
            found = connection.execute(select(base.c.id, base.c.chunk_count).where(are_asked))
            sizes = {row[0]: row[1] for row in found}
            # A few chunks tell most bases that are too large from those that are not.
            for chunks in (token_limit // FEW_TOKENS + 1, token_limit):
                if sum(sizes.values()) > token_limit or measure(connection, list(sizes), chunks) > token_limit:
                    return None
            return [to_hit(row, 1.0) for row in connection.execute(hits_where(in_bases)).mappings()]

        hits = await self._database.snapshot(work)
        return tuple(sorted(hits, key=_place)) if hits is not None else None

    async def beginnings(self, document_ids: Sequence[str], limit: int, most: int) -> tuple[ChunkHit, ...]:
        """Return the first chunks of each document; no more documents are read than are needed."""
        places = {document_id: place for place, document_id in enumerate(document_ids)}

        def work(connection: Connection) -> list[ChunkHit]:
            hits: list[ChunkHit] = []
            for start in range(0, len(document_ids), _DOCUMENTS_AT_ONCE):
                some = document_ids[start : start + _DOCUMENTS_AT_ONCE]
                asked = {"ids": list_parameter(some, self._database.dialect), "behind": limit}
                found = [to_hit(row, 0.0) for row in self._find_beginnings.rows(connection, asked)]
                hits += sorted(found, key=lambda hit: (places[hit.document_id], hit.chunk.ordinal))
                if len(hits) >= most:
                    break
            return hits[:most]

        return tuple(await self._database.snapshot(work)) if document_ids else ()


FEW_TOKENS = 50
"""A chunk mostly has more tokens than this."""


def _possible(found: Sequence[Found], limit: int) -> list[Found]:
    """Return the hits that may be among the first `limit`; ties are decided later, by the texts."""
    scores = sorted((one.score for one in found), reverse=True)
    lowest = scores[min(limit, len(scores)) - 1] if scores else 0.0
    return [one for one in found if one.score >= lowest]


def _place(hit: ChunkHit) -> tuple[object, ...]:
    return (hit.knowledge_base_id, hit.document_name, hit.chunk.ordinal)
