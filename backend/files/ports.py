"""The port for storing files."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Protocol

from backend.files.domain import FileQuery, FileQuota, StoredFile
from backend.foundation.domain.idempotency import KeyClaim


class FileStore(Protocol):
    """Files with their bytes. A file that is removed is found by nobody, although its bytes are deleted later."""

    async def add(
        self, file: StoredFile, body: bytes | bytearray, quota: FileQuota, claim: KeyClaim | None = None
    ) -> None:
        """Store a file, and the claim with it; nobody sees it before all its bytes are stored.

        Raises:
            PayloadTooLarge: its owner would have more files, or more bytes in files, than the quota allows.
            KeyHeld: another request has used the key of the claim; the file is left to be purged.
        """
        ...

    async def find(self, file_id: str) -> StoredFile | None:
        """Return a file, whosever it is, or None."""
        ...

    async def page(self, query: FileQuery) -> tuple[StoredFile, ...]:
        """Return one file more than the limit of the page, where there are so many; equally old ones are by id.

        Raises:
            NotFound: `after` names no file of this user.
        """
        ...

    def pieces(self, file_id: str) -> AsyncIterator[bytes]:
        """Yield the bytes of a file, some at a time.

        Raises:
            NotFound: the file was deleted meanwhile.
        """
        ...

    async def remove(self, file_id: str) -> bool:
        """Take a file from its owner, so that nobody finds it any more; False where there was none."""
        ...

    async def leftovers(self, untouched_since: datetime, most: int) -> tuple[str, ...]:
        """Return ids of removed files that are not postponed, and of uploads that nobody has continued since then."""
        ...

    async def postpone(self, file_id: str, until: datetime) -> None:
        """Leave a removed file out of `leftovers` until an instant."""
        ...

    async def purge(self, file_id: str) -> None:
        """Delete a file that was removed or left behind, with its bytes."""
        ...
