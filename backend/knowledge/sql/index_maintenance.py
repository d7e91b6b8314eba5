"""The loop that keeps the search index in order beside the requests of a process."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection, or_, select

from backend.foundation.services.supervision import is_set_within
from backend.foundation.sql.database import Database
from backend.foundation.sql.short_transactions import run_in_short_transactions
from backend.knowledge.sql import tables
from backend.knowledge.sql.base_deletion import clear_base, find_ownerless
from backend.knowledge.sql.chosen import index_upkeep
from backend.knowledge.sql.document_changes import LEFT_BEHIND_AFTER, DocumentChanges
from shared.clock import Clock

if TYPE_CHECKING:
    from backend.knowledge.sql.upkeep import IndexUpkeep

SWEEP_SECONDS = 600.0
LOOK_SECONDS = 10.0
"""How soon what the release before has changed is indexed, while both run."""

GATHER_SECONDS = 0.2
"""Changes that come this close together are tidied up together."""

_segment = tables.index_segment


class IndexMaintenance:
    """Deletes what ended processes left behind, and merges the segments of bases that have changed."""

    def __init__(self, database: Database, clock: Clock, slice_seconds: float) -> None:
        self._database = database
        self._clock = clock
        self._slice_seconds = slice_seconds
        self._untidy: set[str] = set()
        self._is_untidy = asyncio.Event()
        self._is_at_start = True
        self._upkeep: IndexUpkeep | None = None

    def note_change(self, base_id: str) -> None:
        """Have the segments of a base merged soon."""
        self._untidy.add(base_id)
        self._is_untidy.set()

    async def run(self, *, is_only_replica: bool) -> None:
        """Sweep, and then tidy what changes until it is time to sweep again: in ten minutes."""
        await self.sweep(is_only_replica=is_only_replica and self._is_at_start)
        self._is_at_start = False
        await self._tidy_until(asyncio.get_running_loop().time() + SWEEP_SECONDS)

    async def sweep(self, *, is_only_replica: bool) -> None:
        """Delete what processes left behind that ended while they stored or deleted documents, bases or segments.

        What the release before did meanwhile is brought into the segments.
        """
        left_behind_after = timedelta(0) if is_only_replica else LEFT_BEHIND_AFTER
        changes = DocumentChanges(self._database, self._clock, self._slice_seconds)
        await changes.sweep(is_only_replica=is_only_replica)
        for base_id in await self._database.read(find_ownerless):
            await run_in_short_transactions(self._database, clear_base(base_id), self._slice_seconds)
        upkeep = await self._needed_upkeep()
        if upkeep is None:
            return
        await upkeep.drop_left_behind(left_behind_after)
        await upkeep.note_deleted(everywhere=self._is_at_start)
        await upkeep.index_legacy()
        self._untidy.update(await self._database.read(_bases_with_segments))

    async def tidy(self) -> None:
        """Merge the segments of the bases that have changed, and index what the release before has changed."""
        upkeep = await self._needed_upkeep()
        if upkeep is None:
            return
        await upkeep.note_deleted()
        await upkeep.index_legacy()
        while self._untidy:
            await upkeep.tidy(self._untidy.pop())

    async def _tidy_until(self, end: float) -> None:
        while asyncio.get_running_loop().time() < end:
            self._is_untidy.clear()
            await self.tidy()
            if await is_set_within(self._is_untidy, LOOK_SECONDS):
                await asyncio.sleep(GATHER_SECONDS)

    async def _needed_upkeep(self) -> "IndexUpkeep | None":
        """Return the upkeep; None, and nothing is loaded for it, while the database has nothing to be searched."""
        if self._upkeep is None and await self._database.read(_has_index):
            self._upkeep = await index_upkeep(self._database, self._clock, self._slice_seconds)
        return self._upkeep


def _has_index(connection: Connection) -> bool:
    """Say whether there is a document, or anything of an index."""
    columns = (tables.document.c.id, _segment.c.id, tables.index_page.c.id)
    return bool(connection.execute(select(or_(*(select(column).exists() for column in columns)))).scalar())


def _bases_with_segments(connection: Connection) -> Sequence[str]:
    return connection.execute(select(_segment.c.knowledge_base_id).distinct()).scalars().all()
