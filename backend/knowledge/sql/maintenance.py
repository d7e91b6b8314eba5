"""The loop that keeps bases, documents and their index in order beside the requests of a process."""

from backend.foundation.sql.database import Database
from backend.foundation.sql.short_transactions import run_in_short_transactions
from backend.knowledge.sql.base_deletion import clear_base, find_ownerless
from backend.knowledge.sql.document_changes import DocumentChanges
from backend.knowledge.sql.editions import SearchIndexInDatabase

SWEEP_SECONDS = 600.0


class Maintenance:
    """Deletes what ended processes left behind, and lets the index bring in order what has changed."""

    def __init__(
        self, database: Database, changes: DocumentChanges, index: SearchIndexInDatabase, slice_seconds: float
    ) -> None:
        self._database = database
        self._changes = changes
        self.index = index
        self._slice_seconds = slice_seconds
        self._is_at_start = True

    async def run(self, *, is_only_replica: bool) -> None:
        """Sweep, and then tidy what changes until it is time to sweep again: in ten minutes."""
        await self.sweep(is_only_replica=is_only_replica and self._is_at_start)
        self._is_at_start = False
        await self.index.tidy(SWEEP_SECONDS)

    async def sweep(self, *, is_only_replica: bool) -> None:
        """Delete what processes left behind that ended while they stored or deleted documents, bases or their index."""
        await self._changes.sweep(is_only_replica=is_only_replica)
        for base_id in await self._database.read(find_ownerless):
            await run_in_short_transactions(self._database, clear_base(base_id, self.index), self._slice_seconds)
        await self.index.sweep(is_only_replica=is_only_replica)
