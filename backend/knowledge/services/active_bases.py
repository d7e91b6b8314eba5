"""The time of a base's last use: noted in memory at each search, and stored later."""

from collections.abc import Sequence
from datetime import datetime

from backend.knowledge.ports.attachments import AttachmentStore
from backend.knowledge.ports.knowledge import Retrieval
from backend.search.domain.chunks import ChunkHit
from backend.search.domain.filters import Filter
from shared.clock import Clock

WRITE_ACTIVITY_SECONDS = 10.0


class ActiveBases:
    """Notes uses of bases; what a process has not written when it is killed is lost, and nothing depends on it."""

    def __init__(self, store: AttachmentStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._unwritten: dict[str, datetime] = {}

    def note(self, base_ids: Sequence[str]) -> None:
        """Note that these bases are used now."""
        self._unwritten |= dict.fromkeys(base_ids, self._clock.now())

    def last_use(self, base_id: str) -> datetime | None:
        """Return when this process last noted a use that is not written yet."""
        return self._unwritten.get(base_id)

    async def write(self) -> None:
        """Write down the uses since the last time.

        Raises:
            Unavailable: the database is away. The uses are written the next time.
        """
        uses = dict(self._unwritten)
        if uses:
            await self._store.note_active(list(uses))
        self._unwritten = {base_id: at for base_id, at in self._unwritten.items() if uses.get(base_id) != at}


class NotedRetrieval:
    """A `Retrieval` whose searches are noted as uses of the bases."""

    def __init__(self, retrieval: Retrieval, active: ActiveBases) -> None:
        self._retrieval = retrieval
        self._active = active

    async def search(
        self, base_ids: Sequence[str], query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Search and note."""
        self._active.note(base_ids)
        return await self._retrieval.search(base_ids, query, limit, filters)

    async def everything(self, base_ids: Sequence[str], token_limit: int) -> tuple[ChunkHit, ...] | None:
        """Read whole and note."""
        self._active.note(base_ids)
        return await self._retrieval.everything(base_ids, token_limit)

    async def beginnings(self, document_ids: Sequence[str], limit: int, most: int) -> tuple[ChunkHit, ...]:
        """Read without noting: it is no search."""
        return await self._retrieval.beginnings(document_ids, limit, most)
