"""The files of vector stores: attaching, listing, detaching."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from backend.files.domain import StoredFile
from backend.files.services import Files
from backend.foundation.domain.idempotency import KeyClaim
from backend.identity.domain import Caller
from backend.knowledge.domain.attachments import (
    AttachedFile,
    AttachedQuery,
    Attachment,
    FileBatch,
    FileCounts,
)
from backend.knowledge.domain.knowledge import require_read, require_write
from backend.knowledge.ports.attachments import AttachmentStore
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.search.domain.filters import Attributes
from backend.vector_stores.services.store_access import drop_file, find_store
from shared.clock import Clock
from shared.errors import NotFound
from shared.ids import IdPrefix, new_id

NO_FILE = "There is no such file in the vector store."


class NewAttachment(NamedTuple):
    """A file that a caller attaches, and what they say of it."""

    file_id: str
    attributes: Attributes = {}  # noqa: RUF012 -- never changed


class StoreFiles:
    """The files of stores.

    Every method raises NotFound for a caller who is not a member, and PermissionDenied for a role without this right.
    """

    def __init__(
        self, knowledge: KnowledgeStore, attachments: AttachmentStore, files: Files, wake: asyncio.Event, clock: Clock
    ) -> None:
        self._knowledge = knowledge
        self._attachments = attachments
        self._files = files
        self._wake = wake
        self._clock = clock

    async def attach(self, caller: Caller, store_id: str, new: NewAttachment, claim: KeyClaim | None) -> AttachedFile:
        """Attach an uploaded file of the caller, which is read soon; return it as it is now.

        Raises:
            NotFound: the caller has no such file.
            KeyHeld: another request has used the key of the claim.
        """
        require_write(await find_store(self._knowledge, caller, store_id))
        files = await self.find_uploaded(caller, [new], "file_id")
        await self._queue(self.list_queued(caller, files, store_id), None, claim and claim.of(new.file_id))
        found = await self._attachments.find_attached(store_id, new.file_id)
        if found is None:
            raise NotFound(NO_FILE, param="file_id")
        return found

    async def attach_together(
        self, caller: Caller, store_id: str, new: Sequence[NewAttachment], param: str, claim: KeyClaim | None
    ) -> tuple[FileBatch, FileCounts]:
        """Attach uploaded files of the caller as a batch.

        Raises:
            NotFound: the caller has one of them not; `param` names the list.
            KeyHeld: another request has used the key of the claim.
        """
        require_write(await find_store(self._knowledge, caller, store_id))
        files = await self.find_uploaded(caller, new, param)
        batch = FileBatch(id=new_id(IdPrefix.FILE_BATCH), knowledge_base_id=store_id, created_at=self._clock.now())
        await self._queue(self.list_queued(caller, files, store_id), batch, claim and claim.of(batch.id))
        return await self.find_batch(caller, store_id, batch.id)

    async def find_uploaded(
        self, caller: Caller, new: Sequence[NewAttachment], param: str
    ) -> list[tuple[StoredFile, Attributes]]:
        """Return the caller's files, each once.

        Raises:
            NotFound: the caller has one of them not.
        """
        found: dict[str, tuple[StoredFile, Attributes]] = {}
        for each in new:
            try:
                found[each.file_id] = (await self._files.find(caller, each.file_id), each.attributes)
            except NotFound:
                raise NotFound(f"You have no file '{each.file_id[:64]}'.", param=param) from None
        return list(found.values())

    def list_queued(
        self, caller: Caller, files: Sequence[tuple[StoredFile, Attributes]], store_id: str
    ) -> list[Attachment]:
        """Return files of the caller as they stand in the queue of a store."""
        now = self._clock.now()
        return [
            Attachment(
                knowledge_base_id=store_id,
                file_id=file.id,
                tenant=caller.tenant,
                user_id=caller.user_id,
                filename=file.filename,
                attributes=attributes,
                created_at=now,
            )
            for file, attributes in files
        ]

    def wake_readers(self) -> None:
        """Let the files that were queued be read at once."""
        self._wake.set()

    async def _queue(self, attachments: Sequence[Attachment], batch: FileBatch | None, claim: KeyClaim | None) -> None:
        await self._attachments.attach(attachments, batch, claim)
        self.wake_readers()

    async def page(self, caller: Caller, query: AttachedQuery) -> tuple[tuple[AttachedFile, ...], bool]:
        """Return a page of files, and whether there are more in its direction.

        Raises:
            NotFound: there is no such batch, or a cursor names no file of the store.
        """
        require_read(await find_store(self._knowledge, caller, query.base_id))
        if query.batch_id is not None:
            await self._find_batch(query.base_id, query.batch_id)
        found = await self._attachments.list_attached(query)
        page = found[: query.limit]
        return (page if query.before is None else page[::-1]), len(found) > query.limit

    async def find(self, caller: Caller, store_id: str, file_id: str) -> AttachedFile:
        """Return a file.

        Raises:
            NotFound: the store has no such file.
        """
        require_read(await find_store(self._knowledge, caller, store_id))
        return await self._find(store_id, file_id)

    async def set_attributes(self, caller: Caller, store_id: str, file_id: str, attributes: Attributes) -> AttachedFile:
        """Replace the attributes of a file, by which searches filter from now on.

        Raises:
            NotFound: the store has no such file.
        """
        require_write(await find_store(self._knowledge, caller, store_id))
        if not await self._attachments.set_attributes(store_id, file_id, attributes):
            raise NotFound(NO_FILE, param="file_id")
        return await self._find(store_id, file_id)

    async def detach(self, caller: Caller, store_id: str, file_id: str) -> None:
        """Take a file from a store; the uploaded file stays, a document without one is deleted.

        Raises:
            NotFound: the store has no such file.
        """
        require_write(await find_store(self._knowledge, caller, store_id))
        await self._find(store_id, file_id)
        await drop_file(self._knowledge, self._attachments, store_id, file_id)

    async def texts(self, caller: Caller, store_id: str, file_id: str) -> tuple[AttachedFile, list[str]]:
        """Return the text of a file in pieces, as searches find it; none before it is a document.

        Raises:
            NotFound: the store has no such file.
        """
        found = await self.find(caller, store_id, file_id)
        documents = await self._knowledge.documents_from([file_id])
        document = next((one for one in documents if one.knowledge_base_id == store_id), None)
        chunks = await self._knowledge.chunks(document.id) if document is not None else ()
        return found, [chunk.text for chunk in chunks]

    async def find_batch(self, caller: Caller, store_id: str, batch_id: str) -> tuple[FileBatch, FileCounts]:
        """Return a batch and how far its files are.

        Raises:
            NotFound: the store has no such batch.
        """
        require_read(await find_store(self._knowledge, caller, store_id))
        return await self._find_batch(store_id, batch_id)

    async def cancel_batch(self, caller: Caller, store_id: str, batch_id: str) -> tuple[FileBatch, FileCounts]:
        """Cancel what of a batch has not become a document.

        Raises:
            NotFound: the store has no such batch.
        """
        require_write(await find_store(self._knowledge, caller, store_id))
        await self._attachments.cancel_batch(store_id, batch_id)
        return await self._find_batch(store_id, batch_id)

    async def _find(self, store_id: str, file_id: str) -> AttachedFile:
        found = await self._attachments.find_attached(store_id, file_id)
        if found is None:
            raise NotFound(NO_FILE, param="file_id")
        return found

    async def _find_batch(self, store_id: str, batch_id: str) -> tuple[FileBatch, FileCounts]:
        found = await self._attachments.find_batch(store_id, batch_id)
        if found is None:
            raise NotFound("There is no such batch of files in the vector store.", param="batch_id")
        return found
