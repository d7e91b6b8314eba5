"""Vectors of chunks in SQL."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from math import ceil

from sqlalchemy import Connection, func, select

from backend.embeddings.domain import EmbeddedQuery, EmbeddingModel, Vector
from backend.foundation.sql.database import Database
from backend.foundation.sql.parameters import is_among, list_parameter
from backend.foundation.sql.short_transactions import SLICE_SECONDS
from backend.foundation.sql.statements import Row, Statement
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Filter
from backend.search.domain.fusion import content_rank
from backend.search.ports.vectors import EmbeddingProgress, TakenTexts, TextWithoutVector
from backend.search.sql import tables
from backend.search.sql.chosen import choose_vectors
from backend.search.sql.chunk_rows import ChunkRows
from backend.search.sql.vector_queue import IS_OF_MODEL, VectorQueue, of_model
from backend.search.sql.vector_rows import NewVector, as_stored, free_claims
from backend.search.sql.vector_schema import has_vector_table, make_vector_table
from backend.search.sql.vector_search import (
    LARGE_SPACE,
    NearestVectors,
    NeighbourQuery,
    SearchedSpace,
    statement_of_vectors,
)
from backend.search.sql.vector_sweep import VectorSweep

_base, _space, _edition, _document = (
    tables.knowledge_base,
    tables.vector_space,
    tables.edition_vectors,
    tables.document,
)
_MOST_CANDIDATES = 4096
"""A search looks at no more vectors; only those of chunks that are gone make it look at many."""


class SqlChunkVectors:
    """The `ChunkVectors` over a `Database`."""

    def __init__(
        self, database: Database, slice_seconds: float = SLICE_SECONDS, large_space: int = LARGE_SPACE
    ) -> None:
        self._database = database
        self._nearest = choose_vectors(database, large_space)
        self._chunks = ChunkRows(database.dialect)
        self._queue = VectorQueue(database.dialect)
        self._sweep = VectorSweep(database, slice_seconds, large_space)
        self._is_ready = False
        self._last_space = 0
        self._was_searched = False
        self._having_vector = Statement(statement_of_vectors(database.dialect))
        is_asked = is_among(_base.c.id, "ids", database.dialect)
        of_base = _space.c.knowledge_base_id == _base.c.id
        self._spaces = Statement(
            select(_space.c.id, _base.c.id.label("base_id"), _space.c.dimension, _space.c.removals, _base.c.chunk_count)
            .join_from(_space, _base, of_base)
            .where(is_asked, IS_OF_MODEL, _base.c.embed)
        )
        self._of_documents = Statement(
            select(_document.c.id, _edition.c.embedded_chunks)
            .join_from(_document, _edition, _edition.c.edition_id == _document.c.edition_id)
            .join(_space, (_space.c.id == _edition.c.space_id) & IS_OF_MODEL)
            .where(is_among(_document.c.id, "ids", database.dialect))
        )
        is_shown = select(_document.c.id).where(_document.c.edition_id == _edition.c.edition_id).exists()
        settled = _edition.c.end_number - _edition.c.first_number - _edition.c.waiting_chunks
        embedded, settled = (
            select(func.coalesce(func.sum(counted), 0))
            .join_from(_edition, _space, (_space.c.id == _edition.c.space_id) & IS_OF_MODEL)
            .where(of_base, is_shown)
            .scalar_subquery()
            for counted in (_edition.c.embedded_chunks, settled)
        )
        self._progress = Statement(
            select(
                *(_base.c[name] for name in ("id", "chunk_count", "index_token_count")),
                embedded.label("embedded"),
                settled.label("settled"),
            ).where(is_asked, _base.c.embed)
        )

    async def find_missing(self) -> str | None:
        """Return what the database lacks to hold vectors; what it lacks is tried to be made."""
        if self._is_ready or await self._database.read(has_vector_table):
            self._is_ready = True
            return None
        return await self._database.write(make_vector_table)

    async def discover(self, model: EmbeddingModel, base_id: str | None = None) -> int:
        """Note which documents are to be embedded, some at a time."""
        found = 0
        for each in [base_id] if base_id is not None else await self._database.read(self._queue.bases):
            while unknown := await self._database.read(partial(self._queue.unknown, model=model, base_id=each)):
                found += await self._database.write(partial(self._queue.note, model=model, base_id=each, found=unknown))
        return found

    async def models_of(self, base_id: str) -> Sequence[EmbeddingModel]:
        """Return the models that a base is embedded by."""
        return await self._database.read(partial(self._queue.models_of, base_id=base_id))

    async def take_unembedded(self, model: EmbeddingModel, limit: int, lease: timedelta) -> TakenTexts:
        """Take texts of the next base that has any: bases take turns, and between two of them the last searched."""
        spaces = await self._database.read(partial(self._queue.spaces, model=model))
        ids = [each.id for each in spaces]
        turns = [each for each in ids if each > self._last_space] + [each for each in ids if each <= self._last_space]
        searched = [(each.last_active_at, each.id) for each in spaces if each.last_active_at is not None]
        first = [max(searched)[1]] if searched and not self._was_searched else []
        for each in dict.fromkeys([*first, *turns]):
            take = partial(self._queue.take, space_id=each, limit=limit, lease=lease)
            texts, reused = await self._database.write(take)
            if texts or reused:
                self._was_searched = [each] == first
                self._last_space = self._last_space if self._was_searched else each
                return TakenTexts(tuple(texts), reused)
        return TakenTexts((), 0)

    async def put(self, model: EmbeddingModel, vectors: Sequence[tuple[TextWithoutVector, Vector]]) -> int:
        """Store vectors of taken texts.

        Raises:
            ValueError: a vector has another dimension than the model.
        """
        if any(len(vector) != model.dimension * _FLOAT_BYTES for _, vector in vectors):
            raise ValueError(f"a vector of the model must have {model.dimension} numbers")
        new = [
            NewVector(place, bytes.fromhex(text.digest), stored)
            for text, vector in vectors
            for stored in [as_stored(vector, self._database.dialect)]
            for place in text.places
        ]
        return await self._database.write(partial(self._queue.put, new=new))

    async def refuse(self, model: EmbeddingModel, texts: Sequence[TextWithoutVector]) -> None:
        """Note that the model refuses these texts."""
        new = [NewVector(place, bytes.fromhex(text.digest), None) for text in texts for place in text.places]
        await self._database.write(partial(self._queue.put, new=new))

    async def give_back(self, texts: Sequence[TextWithoutVector]) -> None:
        """Let texts that were taken be taken again."""
        places = [place for text in texts for place in text.places]
        await self._database.write(lambda connection: free_claims(connection, places))

    async def nearest(
        self, base_ids: Sequence[str], query: EmbeddedQuery, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Return the chunks nearest to a question."""
        if not base_ids or limit <= 0 or not await self._has_table():
            return ()
        nearest = await self._nearest()

        def work(connection: Connection) -> list[ChunkHit]:
            ids = list_parameter(base_ids, self._database.dialect)
            found = self._spaces.rows(connection, {"ids": ids, **of_model(query.model)})
            allowed = None if filters is None else self._chunks.find_allowed(connection, base_ids, filters)
            spaces = [SearchedSpace(*row.values()) for row in found if allowed is None or row["base_id"] in allowed]
            return self._hits(connection, nearest, spaces, NeighbourQuery(query.vector, limit, allowed))

        return tuple(sorted(await self._database.snapshot(work), key=content_rank)[:limit])

    async def find_lacking(self, hits: Sequence[ChunkHit], model: EmbeddingModel) -> frozenset[str]:
        """Return the ids of those of these chunks that have no vector of a model."""
        asked = {
            "documents": list_parameter([hit.document_id for hit in hits], self._database.dialect),
            "ordinals": list_parameter([hit.chunk.ordinal for hit in hits], self._database.dialect),
            **of_model(model),
        }
        rows = await self._database.read(lambda connection: self._having_vector.rows(connection, asked))
        return frozenset(hit.chunk.id for hit in hits).difference(row["id"] for row in rows)

    async def _has_table(self) -> bool:
        self._is_ready = self._is_ready or await self._database.read(has_vector_table)
        return self._is_ready

    def _hits(
        self, connection: Connection, nearest: NearestVectors, spaces: Sequence[SearchedSpace], asked: NeighbourQuery
    ) -> list[ChunkHit]:
        """Look at more and more vectors until there are enough chunks of documents, and all that tie with the last."""
        wanted = asked.limit + asked.limit // 10 + 1
        while True:
            found = nearest.nearest(connection, spaces, asked._replace(limit=wanted))
            hits = self._chunks.hits(connection, found)
            if len(found) < wanted or wanted >= _MOST_CANDIDATES:
                return hits
            scores = sorted((hit.score for hit in hits), reverse=True)
            if len(scores) >= asked.limit and found[-1].score < scores[asked.limit - 1]:
                return hits
            wanted = min(4 * wanted, _MOST_CANDIDATES)

    async def progress(self, base_ids: Sequence[str], model: EmbeddingModel) -> Mapping[str, EmbeddingProgress]:
        """Return how far each of these bases has been embedded."""
        asked = {"ids": list_parameter(base_ids, self._database.dialect), **of_model(model)}
        found = await self._database.read(lambda connection: self._progress.rows(connection, asked))
        return {row["id"]: _read_progress(row) for row in found}

    async def count_embedded_chunks(self, document_ids: Sequence[str], model: EmbeddingModel) -> Mapping[str, int]:
        """Return how many chunks of each of these documents have a vector."""
        asked = {"ids": list_parameter(document_ids, self._database.dialect), **of_model(model)}
        found = await self._database.read(lambda connection: self._of_documents.rows(connection, asked))
        return {row["id"]: row["embedded_chunks"] for row in found}

    async def count_waiting(self, model: EmbeddingModel) -> int:
        """Return how many chunks wait for a vector of this model."""
        return await self._database.read(partial(self._queue.count_waiting, model=model))

    async def sweep(self, model: EmbeddingModel | None, *, keeps_reusable: bool = True) -> int:
        """Delete vectors that nothing needs any more."""
        return await self._sweep.sweep(model, keeps_reusable=keeps_reusable) if await self._has_table() else 0

    async def upkeep(self) -> None:
        """Give large bases an index."""
        if self._database.dialect == "postgresql" and await self._has_table():
            await self._sweep.index_large()


_FLOAT_BYTES = 4


def _read_progress(row: Row) -> EmbeddingProgress:
    chunks = row["chunk_count"]
    waiting = max(chunks - int(row["settled"]), 0)
    return EmbeddingProgress(
        int(row["embedded"]), chunks, waiting, ceil(waiting * row["index_token_count"] / (chunks or 1))
    )
