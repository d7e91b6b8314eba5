"""Deleting vectors that nothing needs any more, in small steps, and giving large spaces their index."""

from collections.abc import Sequence
from functools import partial

from sqlalchemy import ColumnElement, Connection, and_, delete, func, or_, select, text

from backend.embeddings.domain import EmbeddingModel
from backend.foundation.sql.database import Database
from backend.foundation.sql.short_transactions import DivisibleWork, run_in_short_transactions
from backend.search.sql import tables
from backend.search.sql.vector_rows import EditionRange, clear_edition

_base, _document = tables.knowledge_base, tables.document
_space, _edition = tables.vector_space, tables.edition_vectors
_other = _space.alias()
_AT_ONCE = 256
_IS_SHOWN = select(_document.c.id).where(_document.c.edition_id == _edition.c.edition_id).exists()
_RANGE = (_edition.c.space_id, _edition.c.edition_id, _edition.c.first_number, _edition.c.end_number)

_NEIGHBOURS, _CANDIDATES = 24, 200
"""How the index of a large space is made: pgvector's own 16 and 64 lose a tenth of the nearest real texts."""

_INDEX_PREFIX = f"ix_search_vector_nearest_{_NEIGHBOURS}_{_CANDIDATES}_"
"""With the figures of its making, so that an index of other ones is made anew."""

_INDEXES = text("""
    SELECT relname, indisvalid, pg_index.indexrelid IN (SELECT index_relid FROM pg_stat_progress_create_index)
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE indrelid = to_regclass('search_vector') AND relname LIKE 'ix_search_vector_nearest_%'
""")


class VectorSweep:
    """Keeps the vectors of a database in order; several processes may do so at a time."""

    def __init__(self, database: Database, slice_seconds: float, large_space: int) -> None:
        self._database = database
        self._slice_seconds = slice_seconds
        self._large_space = large_space

    async def sweep(self, model: EmbeddingModel | None, *, keeps_reusable: bool) -> int:
        """Delete vectors of bases and chunks that are gone or not to be embedded, and of a model that is replaced."""
        swept = 0
        for space_id in await self._database.read(partial(_find_doomed_spaces, model=model)):
            while editions := await self._database.read(partial(_editions_of, space_id=space_id)):
                swept += await self._clear(editions)
            await self._database.write(partial(_drop_space, space_id=space_id))
        while editions := await self._database.read(partial(_orphans, keeps_reusable=keeps_reusable)):
            swept += await self._clear(editions)
        return swept

    async def index_large(self) -> None:
        """Make an index for each large space that has none, beside all other work, and drop those without a space."""
        spaces = {
            f"{_INDEX_PREFIX}{space_id}": (space_id, dimension)
            for space_id, dimension in await self._database.read(partial(_large_spaces, at_least=self._large_space))
        }
        there = {row[0]: row[1:] for row in await self._database.read(lambda c: c.execute(_INDEXES).all())}
        for name, (is_valid, is_being_made) in list(there.items()):
            if name not in spaces or not (is_valid or is_being_made):
                await self._run_alone(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
                del there[name]
        lacking = spaces.keys() - there.keys()
        for name in sorted(lacking):
            space_id, dimension = spaces[name]
            await self._run_alone(
                f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON search_vector USING hnsw"
                f" ((CAST(vector AS halfvec({dimension}))) halfvec_ip_ops)"
                f" WITH (m = {_NEIGHBOURS}, ef_construction = {_CANDIDATES})"
                f" WHERE space_id = {space_id} AND vector IS NOT NULL"
            )
        if lacking:
            # Without statistics a large space is taken for a small one until autovacuum has come by.
            await self._run_alone("ANALYZE search_vector, chunk, document")

    async def _clear(self, editions: Sequence[EditionRange]) -> int:
        return sum([await self._run(clear_edition(edition)) for edition in editions])

    async def _run(self, work: DivisibleWork[int]) -> int:
        return await run_in_short_transactions(self._database, work, self._slice_seconds)

    async def _run_alone(self, statement: str) -> None:
        """Run a statement outside of transactions, however long it takes."""

        def work(connection: Connection) -> None:
            connection.execute(text("SET statement_timeout = 0"))
            try:
                connection.execute(text(statement))
            finally:
                connection.execute(text("RESET statement_timeout"))

        await self._database.read(work, timeout_seconds=None)


def _find_doomed_spaces(connection: Connection, model: EmbeddingModel | None) -> Sequence[int]:
    is_needless = or_(_base.c.id.is_(None), ~_base.c.embed)
    if model is not None:
        is_other = or_(_space.c.model != model.name, _space.c.dimension != model.dimension)
        of_model = (_other.c.model == model.name) & (_other.c.dimension == model.dimension)
        is_needless = or_(is_needless, and_(is_other, ~_lacks_vectors(of_model)))
    query = select(_space.c.id).outerjoin(_base, _base.c.id == _space.c.knowledge_base_id).where(is_needless)
    return connection.execute(query.order_by(_space.c.id)).scalars().all()


def _lacks_vectors(of_space: ColumnElement[bool]) -> ColumnElement[bool]:
    """Say whether a document of the base of a space waits for vectors of another space, or is not known to."""
    known = _edition.alias()
    is_settled = (
        select(known.c.edition_id)
        .join(_other, _other.c.id == known.c.space_id)
        .where(of_space, known.c.edition_id == _document.c.edition_id, known.c.waiting_chunks == 0)
        .correlate(_document, _space)
        .exists()
    )
    of_base = (_document.c.knowledge_base_id == _space.c.knowledge_base_id) & (_document.c.chunk_count > 0)
    return select(_document.c.id).where(of_base, ~is_settled).correlate(_space).exists()


def _editions_of(connection: Connection, space_id: int) -> list[EditionRange]:
    query = select(*_RANGE).where(_edition.c.space_id == space_id).limit(_AT_ONCE)
    return [EditionRange(*row) for row in connection.execute(query)]


def _drop_space(connection: Connection, space_id: int) -> None:
    has_editions = select(_edition.c.edition_id).where(_edition.c.space_id == _space.c.id).exists()
    connection.execute(delete(_space).where(_space.c.id == space_id, ~has_editions))


def _orphans(connection: Connection, *, keeps_reusable: bool) -> list[EditionRange]:
    """Return editions that no document has, without those whose vectors may be those of texts that wait."""
    query = select(*_RANGE).join_from(_edition, _space, _space.c.id == _edition.c.space_id).where(~_IS_SHOWN)
    if keeps_reusable:
        query = query.where(~_lacks_vectors(_other.c.id == _space.c.id))
    return [EditionRange(*row) for row in connection.execute(query.limit(_AT_ONCE))]


def _large_spaces(connection: Connection, at_least: int) -> list[tuple[int, int]]:
    size = func.sum(_edition.c.embedded_chunks)
    query = select(_space.c.id, _space.c.dimension).join(_edition, _edition.c.space_id == _space.c.id)
    query = query.group_by(_space.c.id, _space.c.dimension).having(size >= at_least)
    return [(row[0], row[1]) for row in connection.execute(query)]
