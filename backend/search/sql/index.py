"""The built-in search index, in the database of the documents."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, func, or_, select

from backend.foundation.services.supervision import is_set_within
from backend.foundation.sql.database import Database
from backend.foundation.sql.parameters import is_among, list_parameter
from backend.foundation.sql.short_transactions import LEFT_BEHIND_AFTER, SLICE_SECONDS, DivisibleWork
from backend.foundation.sql.statements import Statement
from backend.search.domain.chunks import CHUNKS_AT_ONCE, Chunk, Range
from backend.search.ports.index import IndexProgress, PreparedChunks
from backend.search.services.fused_search import SearchServices
from backend.search.sql import legacy_index, tables
from backend.search.sql.chosen import choose_reindexing, pack, upkeep
from backend.search.sql.retrieval import SqlRetrieval
from backend.search.sql.segment_rows import SegmentRows, drop_pages
from backend.search.sql.tables import IS_UNINDEXED, UNINDEXED_HINT
from shared.clock import Clock

if TYPE_CHECKING:
    from backend.search.sql.upkeep import IndexUpkeep

LOOK_SECONDS = 10.0
"""How soon what the release before has changed is indexed, while both run."""

GATHER_SECONDS = 0.2
"""Changes that come this close together are tidied up together."""

_base, _document, _segment = tables.knowledge_base, tables.document, tables.index_segment


BuiltInSearch = SearchServices[Connection]


class SqlSearchIndex(SqlRetrieval):
    """The `SearchIndex` over a `Database`, whose transactions are its work. NumPy is loaded at the first use."""

    def __init__(self, database: Database, clock: Clock, slice_seconds: float = SLICE_SECONDS) -> None:
        super().__init__(database)
        self._clock = clock
        self._slice_seconds = slice_seconds
        self._segments = SegmentRows(clock)
        self._untidy: set[str] = set()
        self._is_untidy = asyncio.Event()
        self._is_at_start = True
        self._upkeep: IndexUpkeep | None = None
        unindexed = (
            select(func.coalesce(func.sum(_document.c.chunk_count), 0))
            .where(_document.c.knowledge_base_id == _base.c.id, IS_UNINDEXED)
            .with_hint(_document, UNINDEXED_HINT, "sqlite")
            .scalar_subquery()
        )
        is_asked = is_among(_base.c.id, "ids", database.dialect)
        self._progress = Statement(
            select(_base.c.id, _base.c.chunk_count, unindexed.label("unindexed")).where(is_asked)
        )

    def open(self, work: Connection, base_id: str) -> None:
        """Make what the release before needs to search a base; segments come with its chunks."""
        legacy_index.open_base(work, base_id)

    async def prepare(self, chunks: Sequence[Chunk]) -> PreparedChunks[Connection]:
        """Pack the postings of chunks into a segment, in a thread."""
        segment = await asyncio.to_thread(pack, chunks)

        def put(work: Connection, base_id: str, first_number: int) -> None:
            self._segments.add(work, base_id, first_number, segment, is_visible=True)

        return PreparedChunks(chunks, segment.token_count, put)

    def remove(self, base_id: str, numbers: Range) -> DivisibleWork[None]:
        """Hide the segments of chunks and delete them."""
        connection = yield
        hidden = self._segments.remove(connection, base_id, numbers)
        for first in range(numbers.first_number, numbers.end_number, CHUNKS_AT_ONCE):
            connection = yield
            legacy_index.remove(connection, base_id, Range(first, min(first + CHUNKS_AT_ONCE, numbers.end_number)))
        yield from self._segments.drop(hidden)

    def drop(self, base_id: str) -> DivisibleWork[None]:
        """Delete all segments of a base, and what the release before keeps of it."""
        connection = yield
        of_base = _segment.c.knowledge_base_id == base_id
        for segment_id in connection.execute(select(_segment.c.id).where(of_base)).scalars().all():
            yield from drop_pages(segment_id)
            connection = yield
            connection.execute(delete(_segment).where(_segment.c.id == segment_id))
        connection = yield
        legacy_index.drop_base(connection, base_id)

    async def progress(self, base_ids: Sequence[str]) -> Mapping[str, IndexProgress]:
        """Tell how many chunks are in segments; the others are those that the release before has put."""
        asked = {"ids": list_parameter(base_ids, self._database.dialect)}
        found = await self._database.read(lambda connection: self._progress.rows(connection, asked))
        return {
            row["id"]: IndexProgress(row["chunk_count"] - int(row["unindexed"]), row["chunk_count"]) for row in found
        }

    def note_change(self, base_id: str) -> None:
        """Have the segments of a base merged soon."""
        self._untidy.add(base_id)
        self._is_untidy.set()

    async def sweep(self, *, is_only_replica: bool) -> None:
        """Delete segments that ended processes left behind; for the only replica these are all hidden ones.

        What the release before did meanwhile is brought into the segments.
        """
        upkeep = await self._load_needed_upkeep()
        if upkeep is not None:
            await upkeep.drop_left_behind(timedelta(0) if is_only_replica else LEFT_BEHIND_AFTER)
            await upkeep.note_deleted(everywhere=self._is_at_start)
            await upkeep.index_legacy()
            await upkeep.renew()
            bases = select(_segment.c.knowledge_base_id).distinct()
            self._untidy.update(await self._database.read(lambda work: work.execute(bases).scalars().all()))
        self._is_at_start = False

    async def tidy(self, seconds: float = 0.0) -> None:
        """Merge the segments of the bases that have changed, and index what the release before has changed."""
        end = asyncio.get_running_loop().time() + seconds
        while True:
            self._is_untidy.clear()
            await self._tidy_noted()
            if asyncio.get_running_loop().time() >= end:
                return
            if await is_set_within(self._is_untidy, LOOK_SECONDS):
                await asyncio.sleep(GATHER_SECONDS)

    async def reindex(self) -> AsyncIterator[IndexProgress]:
        """Replace all segments; what the release before has put and nobody has indexed yet is indexed as well."""
        upkeep = await self._load_needed_upkeep()
        if upkeep is None:
            return
        async for progress in choose_reindexing(self._database, self._clock, upkeep).run():
            yield progress
        await self._tidy_noted()

    async def _tidy_noted(self) -> None:
        upkeep = await self._load_needed_upkeep()
        if upkeep is None:
            return
        await upkeep.note_deleted()
        await upkeep.index_legacy()
        await upkeep.renew()
        while self._untidy:
            await upkeep.tidy(self._untidy.pop())

    async def _load_needed_upkeep(self) -> "IndexUpkeep | None":
        """Return the upkeep; None, and nothing is loaded for it, while the database has nothing to be searched."""
        if self._upkeep is None and await self._database.read(_has_index):
            self._upkeep = await asyncio.to_thread(upkeep, self._database, self._clock, self._slice_seconds)
        return self._upkeep


def _has_index(connection: Connection) -> bool:
    """Say whether there is a document, or anything of an index."""
    columns = (_document.c.id, _segment.c.id, tables.index_page.c.id)
    return bool(connection.execute(select(or_(*(select(column).exists() for column in columns)))).scalar())
