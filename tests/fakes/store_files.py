"""An in-memory `FileStore`."""

from collections.abc import AsyncIterator
from datetime import datetime

from backend.files.domain import FileQuery, FileQuota, StoredFile
from backend.foundation.domain.idempotency import KeyClaim
from shared.clock import Clock
from shared.errors import NotFound
from tests.fakes.clock import FakeClock
from tests.fakes.store_claims import take_key


class FakeFiles:
    """Files by id; nothing is left behind of an upload that breaks off."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._files: dict[str, tuple[StoredFile, bytes]] = {}
        self._removed: dict[str, datetime] = {}
        self._clock = clock or FakeClock()
        self.claims: dict[str, KeyClaim] = {}

    async def add(
        self, file: StoredFile, body: bytes | bytearray, quota: FileQuota, claim: KeyClaim | None = None
    ) -> None:
        """Store a file within the quota."""
        taken = [one.size_bytes for one, _ in self._files.values() if _owner(one) == _owner(file)]
        quota.check(len(taken), sum(taken), file.size_bytes)
        take_key(self.claims, claim)
        self._files[file.id] = (file, bytes(body))

    async def find(self, file_id: str) -> StoredFile | None:
        """Return a file, or None."""
        found = self._files.get(file_id)
        return found[0] if found else None

    async def page(self, query: FileQuery) -> tuple[StoredFile, ...]:
        """Return a page and one file more."""
        own = [one for one, _ in self._files.values() if _owner(one) == (query.tenant, query.user_id)]
        ids = [one.id for one in own]
        page = query.page
        if page.after is not None and page.after not in ids:
            raise NotFound("There is no such file.", param="after")
        ordered = sorted(own, key=lambda one: (one.created_at, one.id), reverse=page.descending)
        start = next((place for place, one in enumerate(ordered, 1) if one.id == page.after), 0)
        wanted = [one for one in ordered[start:] if query.purpose in (None, one.purpose)]
        return tuple(wanted[: page.limit + 1])

    async def pieces(self, file_id: str) -> AsyncIterator[bytes]:
        """Yield the bytes in two pieces."""
        if file_id not in self._files:
            raise NotFound("There is no such file.", param="file_id")
        body = self._files[file_id][1]
        for piece in (body[:10], body[10:]):
            yield piece

    async def remove(self, file_id: str) -> bool:
        """Take a file from its owner."""
        if self._files.pop(file_id, None) is None:
            return False
        self._removed[file_id] = self._clock.now()
        return True

    async def leftovers(self, untouched_since: datetime, most: int) -> tuple[str, ...]:
        """Return the removed files."""
        due = [file_id for file_id, at in self._removed.items() if at <= self._clock.now()]
        return tuple(sorted(due, key=self._removed.__getitem__)[:most])

    async def postpone(self, file_id: str, until: datetime) -> None:
        """Keep a removed file longer."""
        if file_id in self._removed:
            self._removed[file_id] = until

    async def purge(self, file_id: str) -> None:
        """Forget a removed file."""
        self._removed.pop(file_id, None)


def _owner(file: StoredFile) -> tuple[str, str]:
    return (file.tenant, file.user_id)
