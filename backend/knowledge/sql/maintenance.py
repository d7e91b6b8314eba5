"""The loop that keeps bases, documents and their index in order beside the requests of a process."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from backend.foundation.sql.database import Database
from backend.foundation.sql.short_transactions import DivisibleWork, run_in_short_transactions
from backend.knowledge.sql import tables
from backend.knowledge.sql.document_changes import DocumentChanges
from backend.knowledge.sql.editions import SearchIndexInDatabase, clear_chunks
from backend.search.domain.chunks import Range

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


_base, _member, _document = tables.knowledge_base, tables.knowledge_member, tables.document
_chunk = tables.chunk


def find_ownerless(connection: Connection) -> Sequence[str]:
    """Return the bases without any member: a base keeps an owner until it is deleted."""
    has_member = select(_member.c.user_id).where(_member.c.knowledge_base_id == _base.c.id).exists()
    return connection.execute(select(_base.c.id).where(~has_member)).scalars().all()


def clear_base(base_id: str, index: SearchIndexInDatabase) -> DivisibleWork[None]:
    """Delete documents, chunks and index of a base, then the base."""
    # Who changes documents locks the base and then the documents, too.
    locking = select(_base.c.id).where(_base.c.id == base_id).with_for_update()
    while True:
        connection = yield
        connection.execute(locking)
        is_first = _document.c.id.in_(select(_document.c.id).where(_document.c.knowledge_base_id == base_id).limit(1))
        if not connection.execute(delete(_document).where(is_first)).rowcount:
            break
    while (numbers := _ends(connection, base_id)) is not None:
        yield from index.remove(base_id, numbers)
        yield from clear_chunks(base_id, numbers)
        connection = yield
    yield from index.drop(base_id)
    connection = yield
    connection.execute(delete(_base).where(_base.c.id == base_id))


def _ends(connection: Connection, base_id: str) -> Range | None:
    """Return the range in which the numbers of the chunks of a base lie; None where it has none."""
    query = select(_chunk.c.number).where(_chunk.c.knowledge_base_id == base_id)
    first = connection.execute(query.order_by(_chunk.c.number).limit(1)).scalar()
    last = connection.execute(query.order_by(_chunk.c.number.desc()).limit(1)).scalar()
    return Range(first, last + 1) if first is not None and last is not None else None
