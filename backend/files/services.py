"""Uploading, finding and deleting files."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from backend.files.domain import FilePurpose, FileQuery, FileQuota, StoredFile, check_filename
from backend.files.ports import FileStore
from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.domain.paging import PageQuery
from backend.foundation.services.parts import Part
from backend.foundation.services.supervision import Supervisor
from backend.identity.domain import Caller
from shared.clock import Clock
from shared.errors import InvalidRequest, NotFound
from shared.ids import IdPrefix, new_id

CLEAR_FILES_SECONDS = 5.0
CLEARED_AT_ONCE = 100
LEFT_BEHIND_AFTER = timedelta(minutes=10)
"""Far longer than the pause between two pieces of an upload that goes on."""

CLEAR_FILE = "clear_file"
FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(hours=1)
"""The pause of a file that cannot be deleted doubles from the first to the longest one."""

MAX_COUNTED_FILES = 1_000
"""Files whose failures are counted; beyond it the pause of a file begins anew."""

Withdrawal = Callable[[str], Awaitable[None]]
"""Deletes what another package has made of the file of this id."""


class NewFile(NamedTuple):
    """A file as a client sends it; `content_type` is what it names for the file, if anything.

    `sha256` is the digest of `body` in hexadecimal digits.
    """

    filename: str
    purpose: FilePurpose
    content_type: str | None
    body: bytes | bytearray
    sha256: str


class FilePage(NamedTuple):
    """Some files of a user, and whether there are more behind them."""

    files: tuple[StoredFile, ...]
    has_more: bool


class Files:
    """The files of callers; somebody else's file does not exist for them."""

    def __init__(self, store: FileStore, clock: Clock, quota: FileQuota) -> None:
        self._store = store
        self._clock = clock
        self._quota = quota

    async def upload(self, caller: Caller, new: NewFile, claim: KeyClaim | None) -> StoredFile:
        """Store a file.

        Raises:
            InvalidRequest: the name is wrong, or the file is empty.
            PayloadTooLarge: the caller would have too many files, or too many bytes in files.
            KeyHeld: another request has used the key of the claim.
        """
        check_filename(new.filename)
        if not new.body:
            raise InvalidRequest(f"The file '{new.filename}' is empty.", param="file")
        file = StoredFile(
            id=new_id(IdPrefix.FILE, separator="-"),
            tenant=caller.tenant,
            user_id=caller.user_id,
            filename=new.filename,
            purpose=new.purpose,
            content_type=new.content_type,
            size_bytes=len(new.body),
            sha256=new.sha256,
            created_at=self._clock.now(),
        )
        await self._store.add(file, new.body, self._quota, claim and claim.of(file.id))
        return file

    async def find(self, caller: Caller, file_id: str) -> StoredFile:
        """Return a file of the caller.

        Raises:
            NotFound: the caller has no such file.
        """
        file = await self._own(caller, file_id)
        if file is None:
            raise NotFound("There is no such file.", param="file_id")
        return file

    async def has(self, caller: Caller, file_id: str) -> bool:
        """Return whether the caller has this file."""
        return await self._own(caller, file_id) is not None

    async def _own(self, caller: Caller, file_id: str) -> StoredFile | None:
        file = await self._store.find(file_id)
        is_own = file is not None and (file.tenant, file.user_id) == (caller.tenant, caller.user_id)
        return file if is_own else None

    async def page(self, caller: Caller, page: PageQuery, purpose: str | None) -> FilePage:
        """Return a page of the caller's files.

        Raises:
            NotFound: `after` names none of them.
        """
        query = FileQuery(tenant=caller.tenant, user_id=caller.user_id, page=page, purpose=purpose)
        found = await self._store.page(query)
        return FilePage(found[: page.limit], len(found) > page.limit)

    def pieces(self, file: StoredFile) -> AsyncIterator[bytes]:
        """Yield the bytes of a file that the caller was found to have.

        Raises:
            NotFound: the file was deleted meanwhile.
        """
        return self._store.pieces(file.id)

    async def delete(self, caller: Caller, file_id: str) -> None:
        """Delete a file; what was made of it in knowledge bases is deleted soon after.

        Raises:
            NotFound: the caller has no such file.
        """
        await self.find(caller, file_id)
        if not await self._store.remove(file_id):
            raise NotFound("There is no such file.", param="file_id")


class FilePackage(NamedTuple):
    """What the package adds to the process, and what the packages above need to build their use cases."""

    part: Part
    store: FileStore
    services: Files


class FileClearing:
    """Deletes removed files, and uploads that broke off, with what other packages have made of them.

    A file that cannot be deleted waits longer after each failure, and the others do not wait for it.
    """

    def __init__(
        self, store: FileStore, clock: Clock, withdrawals: Sequence[Withdrawal], supervisor: Supervisor
    ) -> None:
        self._store = store
        self._clock = clock
        self._withdrawals = withdrawals
        self._supervisor = supervisor
        self._failures: dict[str, int] = {}

    async def clear(self) -> None:
        """Delete all that there is to delete; a process that ends meanwhile leaves the rest to the next call.

        Raises:
            Unavailable: the database is away.
        """
        while found := await self._store.leftovers(self._clock.now() - LEFT_BEHIND_AFTER, CLEARED_AT_ONCE):
            for file_id in found:
                if await self._supervisor.attempt(CLEAR_FILE, partial(self._clear_one, file_id)):
                    self._failures.pop(file_id, None)
                else:
                    await self._store.postpone(file_id, self._clock.now() + self._pause_after_failure(file_id))

    async def _clear_one(self, file_id: str) -> None:
        for withdraw in self._withdrawals:
            await withdraw(file_id)
        await self._store.purge(file_id)

    def _pause_after_failure(self, file_id: str) -> timedelta:
        # What fails again goes to the end, so that the file forgotten below is the one that failed longest ago.
        failures = self._failures.pop(file_id, 0) + 1
        self._failures[file_id] = failures
        if len(self._failures) > MAX_COUNTED_FILES:
            del self._failures[next(iter(self._failures))]
        return min(FIRST_PAUSE * 2 ** min(failures - 1, 16), LONGEST_PAUSE)


async def whole_file(pieces: AsyncIterator[bytes]) -> bytearray:
    """Return all bytes of a file from its pieces, held once in memory.

    Raises:
        NotFound: the file was deleted meanwhile.
    """
    body = bytearray()
    async for piece in pieces:
        body += piece
    return body
