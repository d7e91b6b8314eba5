"""The time of a base's last use: noted in memory at each search, and stored later."""

from collections.abc import Sequence
from datetime import datetime

from backend.knowledge.ports.attachments import AttachmentStore
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
