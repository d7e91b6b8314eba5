"""Uploading, finding and deleting files."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import NamedTuple

from backend.files.domain import MAX_BYTES_OF_USER, FilePurpose, FileQuery, StoredFile, check_filename
from backend.files.ports import FileStore
from backend.foundation.domain.paging import PageQuery
from backend.identity.domain import Caller
from shared.clock import Clock
from shared.errors import InvalidRequest, NotFound
from shared.ids import IdPrefix, new_id

MAX_BYTES_HASHED_HERE = 1_000_000
"""More would hold the event loop for more than a millisecond."""

CLEAR_FILES_SECONDS = 5.0
CLEARED_AT_ONCE = 100
LEFT_BEHIND_AFTER = timedelta(minutes=10)
"""Far longer than the pause between two pieces of an upload that goes on."""

Withdrawal = Callable[[str], Awaitable[None]]
"""Deletes what another room has made of the file of this id."""


class NewFile(NamedTuple):
    """A file as a client sends it; `content_type` is what it names for the file, if anything."""

    filename: str
    purpose: FilePurpose
    content_type: str | None
    body: bytes | bytearray


class FilePage(NamedTuple):
    """Some files of a user, and whether there are more behind them."""

    files: tuple[StoredFile, ...]
    has_more: bool


class Files:
    """The files of callers; somebody else's file does not exist for them."""

    def __init__(self, store: FileStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def upload(self, caller: Caller, new: NewFile) -> StoredFile:
        """Store a file.

        Raises:
            InvalidRequest: the name is wrong, or the file is empty.
            PayloadTooLarge: the caller's files would have too many bytes together.
        """
        check_filename(new.filename)
        if not new.body:
            raise InvalidRequest(f"The file '{new.filename}' is empty.", param="file")
        is_long = len(new.body) > MAX_BYTES_HASHED_HERE
        digest = await asyncio.to_thread(sha256, new.body) if is_long else sha256(new.body)
        file = StoredFile(
            id=new_id(IdPrefix.FILE, separator="-"),
            tenant=caller.tenant,
            user_id=caller.user_id,
            filename=new.filename,
            purpose=new.purpose,
            content_type=new.content_type,
            size_bytes=len(new.body),
            sha256=digest.hexdigest(),
            created_at=self._clock.now(),
        )
        await self._store.add(file, new.body, MAX_BYTES_OF_USER)
        return file

    async def find(self, caller: Caller, file_id: str) -> StoredFile:
        """Return a file of the caller.

        Raises:
            NotFound: the caller has no such file.
        """
        file = await self._store.find(file_id)
        if file is None or (file.tenant, file.user_id) != (caller.tenant, caller.user_id):
            raise NotFound("There is no such file.", param="file_id")
        return file

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


class FileClearing:
    """Deletes removed files, and uploads that broke off, with what other rooms have made of them."""

    def __init__(self, store: FileStore, clock: Clock, withdrawals: Sequence[Withdrawal]) -> None:
        self._store = store
        self._clock = clock
        self._withdrawals = withdrawals

    async def clear(self) -> None:
        """Delete all that there is to delete; a process that ends meanwhile leaves the rest to the next call.

        Raises:
            Unavailable: the database is away.
        """
        while found := await self._store.leftovers(self._clock.now() - LEFT_BEHIND_AFTER, CLEARED_AT_ONCE):
            for file_id in found:
                for withdraw in self._withdrawals:
                    await withdraw(file_id)
                await self._store.purge(file_id)


async def whole_file(pieces: AsyncIterator[bytes]) -> bytearray:
    """Return all bytes of a file from its pieces, held once in memory.

    Raises:
        NotFound: the file was deleted meanwhile.
    """
    body = bytearray()
    async for piece in pieces:
        body += piece
    return body
