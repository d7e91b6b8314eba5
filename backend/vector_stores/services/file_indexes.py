"""File indexes: uploaded files are read once, and their texts are there for messages and agents.

A file index is filled by the readers of attached files: a process that is killed while it reads leaves the file to
another.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence

from backend.files.ports import FileStore
from backend.files.services import Files
from backend.identity.domain import Caller
from backend.knowledge.domain.attachments import AttachedFile, AttachedQuery, AttachedStatus, Attachment
from backend.knowledge.domain.file_indexes import (
    FILE_INDEX_OWNER,
    FileIndex,
    FileIndexState,
    IndexedFile,
    file_index_of_user,
)
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.ports.attachments import AttachmentStore
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.knowledge_documents import text_page
from backend.vector_stores.services.store_access import drop_file
from shared.clock import Clock
from shared.errors import NotFound

WAIT_SECONDS = 20.0
"""How long a turn waits for files that are being read: most take less than a second, and the turn goes on without."""

FIRST_LOOK_SECONDS, LAST_LOOK_SECONDS = 0.02, 0.5
"""The pauses between looks at files that are being read; each is twice as long as the one before."""

FILES_AT_ONCE = 100

_STATES = {
    AttachedStatus.IN_PROGRESS: FileIndexState.BEING_READ,
    # Its document was not there before, or was deleted since.
    AttachedStatus.COMPLETED: FileIndexState.DELETED,
    AttachedStatus.FAILED: FileIndexState.UNREADABLE,
    AttachedStatus.CANCELLED: FileIndexState.UNREADABLE,
}


class FileIndexes:
    """Uploaded files with their texts. The caller of a method decides who may see a file."""

    def __init__(
        self,
        knowledge: KnowledgeStore,
        attachments: AttachmentStore,
        files: FileStore,
        wake: asyncio.Event,
        clock: Clock,
    ) -> None:
        self._knowledge = knowledge
        self._attachments = attachments
        self._files = files
        self._wake = wake
        self._clock = clock

    async def put(self, file_index: FileIndex, file_ids: Sequence[str]) -> None:
        """Have files read in the background; those that are in the file index already are not read again.

        Raises:
            Unavailable: the database is away. Retryable.
        """
        find = self._attachments.find_attached
        await self._queue(file_index, [key for key in file_ids if await find(file_index.id, key) is None])

    async def files(
        self, file_index: FileIndex, file_ids: Sequence[str], wait_seconds: float = WAIT_SECONDS
    ) -> tuple[IndexedFile, ...]:
        """Return files in the order of their ids; files that nobody has put yet are put, and waited for.

        A file that takes longer is returned as one that is being read.

        Raises:
            Unavailable: the database is away. Retryable.
        """
        found = await self._read_files(file_index, file_ids)
        missing = [file_id for file_id in file_ids if file_id not in found]
        if missing:
            await self.put(file_index, missing)
            others = await self._wait_for(file_index, missing, wait_seconds)
            found = {**others, **await self._read_files(file_index, file_ids)}
        return tuple(found[file_id] for file_id in file_ids)

    async def text(self, document: Document) -> str:
        """Return the whole text of a file that was read.

        Raises:
            NotFound: the file was deleted meanwhile.
        """
        return (await text_page(self._knowledge, document, 0, sys.maxsize)).text

    async def keep_only(self, file_index: FileIndex, file_ids: Sequence[str]) -> None:
        """Take all other files from a file index; searches no longer find them."""
        kept = frozenset(file_ids)
        for file in await self._all(file_index):
            if file.id not in kept:
                await drop_file(self._knowledge, self._attachments, file_index.id, file.id)

    async def _all(self, file_index: FileIndex) -> list[AttachedFile]:
        """Return all files; it begins anew where the last of a page is taken away meanwhile."""
        found: list[AttachedFile] = []
        query = AttachedQuery(file_index.id, FILES_AT_ONCE, descending=False)
        try:
            while page := (await self._attachments.list_attached(query))[:FILES_AT_ONCE]:
                found += page
                query = query._replace(after=page[-1].id)
        except NotFound:
            return await self._all(file_index)
        return found

    async def clear(self, file_index: FileIndex) -> None:
        """Delete a file index with the texts on it."""
        await self._knowledge.delete_base(file_index.id)

    async def _read_files(self, file_index: FileIndex, file_ids: Sequence[str]) -> Mapping[str, IndexedFile]:
        """Return by id those files that have been read."""
        documents = {
            document.file_id: document
            for document in await self._knowledge.documents_from(file_ids)
            if document.knowledge_base_id == file_index.id and document.file_id is not None
        }
        if not documents:
            return {}
        counts = await self._knowledge.token_counts([document.id for document in documents.values()])
        return {
            file_id: IndexedFile(file_id, one.title, FileIndexState.READ, counts.get(one.id, 0), one)
            for file_id, one in documents.items()
        }

    async def _look_at(self, file_index: FileIndex, file_id: str) -> IndexedFile:
        """Return a file by its state in the queue; one that was read is found as a document."""
        attached = await self._attachments.find_attached(file_index.id, file_id)
        stored = await self._files.find(file_id)
        name = stored.filename if stored is not None else file_id
        if attached is None or stored is None:
            return IndexedFile(file_id, name, FileIndexState.DELETED)
        return IndexedFile(file_id, name, _STATES[attached.status], error=attached.error)

    async def _queue(self, file_index: FileIndex, file_ids: Sequence[str]) -> None:
        files = [await self._files.find(file_id) for file_id in file_ids]
        now = self._clock.now()
        new = [
            Attachment(
                knowledge_base_id=file_index.id,
                file_id=file.id,
                tenant=file_index.tenant,
                # In the queue, where users take turns, a file index is one of its own: it waits for no vector store.
                user_id=file_index.id,
                filename=file.filename,
                attributes={},
                created_at=now,
            )
            for file in files
            if file is not None
        ]
        if new:
            await self._knowledge.ensure_base(file_index.as_base(now), FILE_INDEX_OWNER)
            await self._attachments.attach(new)
            self._wake.set()

    async def _wait_for(
        self, file_index: FileIndex, file_ids: Sequence[str], wait_seconds: float
    ) -> dict[str, IndexedFile]:
        """Look at files until none of them is being read, but for no longer than this."""
        pause_seconds, loop = FIRST_LOOK_SECONDS, asyncio.get_running_loop()
        until = loop.time() + wait_seconds
        found: dict[str, IndexedFile] = {}
        while True:
            found |= {key: await self._look_at(file_index, key) for key in file_ids if _may_change(found.get(key))}
            if not any(map(_may_change, found.values())) or loop.time() + pause_seconds > until:
                return found
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, LAST_LOOK_SECONDS)


def _may_change(file: IndexedFile | None) -> bool:
    return file is None or file.state is FileIndexState.BEING_READ


class UploadsById:
    """The uploaded files of callers, with the texts that stand in the file index of each."""

    def __init__(self, files: Files, file_indexes: FileIndexes) -> None:
        self._files = files
        self._file_indexes = file_indexes

    async def find(
        self, caller: Caller, file_ids: Sequence[str], wait_seconds: float = WAIT_SECONDS
    ) -> Mapping[str, IndexedFile]:
        """Return by id those of the files that the caller has; those that are being read are waited for so long."""
        own = [file_id for file_id in file_ids if await self._files.has(caller, file_id)]
        file_index = file_index_of_user(caller.tenant, caller.user_id)
        found = await self._file_indexes.files(file_index, own, wait_seconds)
        return {file.file_id: file for file in found}

    async def text(self, file: IndexedFile) -> str:
        """Return the text of a file that was read.

        Raises:
            NotFound: it was deleted meanwhile.
        """
        if file.document is None:
            raise NotFound("There is no such file.", param="file_id")
        return await self._file_indexes.text(file.document)
