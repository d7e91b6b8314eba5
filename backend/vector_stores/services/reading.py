"""Reading attached files: each becomes a document of its base, or fails with a reason.

The queue is in the database. Any replica takes files from it under short leases, which it renews while it reads; where
it is killed, another one takes the file, and only the holder of the newest lease can store the document.
"""

import asyncio
from contextlib import suppress
from typing import NamedTuple

from backend.extraction.domain.media_types import READER_VERSIONS, charset_of, media_type_of
from backend.extraction.ports import DocumentReader, ReadableFile
from backend.files.ports import FileStore
from backend.files.services import whole_file
from backend.foundation.services.supervision import beside, is_set_within
from backend.knowledge.domain.attachments import FileError, FileErrorCode, TakenAttachment
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.ports.attachments import AttachmentStore
from backend.knowledge.ports.knowledge import KnowledgeStore
from shared.errors import Conflict, InvalidRequest, NotFound, Unavailable, UnsupportedValue
from shared.ids import IdPrefix, new_id

READERS = 2
"""How many attached files one process reads at a time, so that a place is left for documents that are put."""

LOOK_SECONDS = 2.0
"""How soon a file is found that another replica has queued, or has left behind."""

LEASE_SECONDS = 15.0
RENEW_SECONDS = 5.0
PAUSE_SECONDS = 2.0
"""How long a file waits whose reading found no place, or no database."""

MAX_ATTEMPTS = 4
"""A file with which processes ended so often is read no more."""


class ReadingTerms(NamedTuple):
    """Whether nobody but this process reads, and how long a reader waits.

    It waits between two renewals of its lease, and after a file for which there was no place.
    """

    is_only_replica: bool
    renew_seconds: float = RENEW_SECONDS
    pause_seconds: float = PAUSE_SECONDS


class AttachedFileReading:
    """Takes files from the queue; who queues one sets `wake`. Several calls may run side by side."""

    def __init__(
        self,
        attachments: AttachmentStore,
        files: FileStore,
        knowledge: KnowledgeStore,
        reader: DocumentReader,
        wake: asyncio.Event,
        terms: ReadingTerms,
    ) -> None:
        self._attachments = attachments
        self._files = files
        self._knowledge = knowledge
        self._reader = reader
        self._wake = wake
        self._terms = terms
        self._last_served: tuple[str, str] | None = None
        self._takes_all = terms.is_only_replica

    async def step(self) -> None:
        """Read the next file; where there is none, wait until there may be.

        Raises:
            Unavailable: the database is away.
        """
        if self._takes_all:
            # This process has just started: what is leased was left behind.
            self._takes_all = False
            await self._attachments.release_all()
        self._wake.clear()
        taken = await self._attachments.take(self._last_served, LEASE_SECONDS)
        if taken is None:
            await is_set_within(self._wake, LOOK_SECONDS)
            return
        self._last_served = (taken.attachment.tenant, taken.attachment.user_id)
        await self._read(taken)

    async def _read(self, taken: TakenAttachment) -> None:
        async with beside(self._outcome(taken)) as reading, beside(self._keep(taken)) as keeping:
            try:
                await asyncio.wait((reading, keeping), return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                with suppress(Unavailable):
                    await self._attachments.release(taken.claim, 0.0)
                raise
            if not reading.done():
                keeping.result()  # raises what ended the renewals; where nothing did, the claim is lost
                return
            error = reading.result()
        if error is not None:
            await self._attachments.fail(taken.claim, error)

    async def _outcome(self, taken: TakenAttachment) -> FileError | None:
        """Make a document of a file; return why that cannot be, or None where it is done, or somebody else's now."""
        name = taken.attachment.filename
        if taken.attempts > MAX_ATTEMPTS:
            return _error("server_error", name, f"reading it was broken off {MAX_ATTEMPTS} times.")
        try:
            await self._store(taken)
        except UnsupportedValue as error:
            return _error("unsupported_file", name, error.message)
        except InvalidRequest as error:
            return _error("invalid_file", name, error.message)
        except Unavailable:
            await self._attachments.release(taken.claim, PAUSE_SECONDS)
            # The next file would find no place either, after all its bytes were fetched.
            await asyncio.sleep(self._terms.pause_seconds)
        except Conflict:
            return None
        except NotFound:
            return _error("invalid_file", name, "it was deleted.")
        return None

    async def _store(self, taken: TakenAttachment) -> None:
        queued = taken.attachment
        file = await self._files.find(queued.file_id)
        if file is None:
            raise NotFound("There is no such file.", param="file_id")
        body = await whole_file(self._files.pieces(file.id))
        media_type = media_type_of(file.content_type, file.filename, body)
        document_id = new_id(IdPrefix.DOCUMENT)
        charset = charset_of(file.content_type)
        readable = ReadableFile(queued.tenant, queued.user_id, document_id, media_type, body, charset, True)
        async with self._reader.read(readable) as cut:
            document = Document(
                id=document_id,
                knowledge_base_id=queued.knowledge_base_id,
                name=file.filename,
                media_type=media_type,
                sha256=file.sha256,
                size_bytes=file.size_bytes,
                chunk_count=cut.chunk_count,
                notes=cut.notes,
                unread_pictures=cut.unread_pictures,
                reader_version=READER_VERSIONS[media_type],
                charset=charset,
                created_at=queued.created_at,
            )
            await self._knowledge.put_document(document, body, cut.batches, taken.claim)

    async def _keep(self, taken: TakenAttachment) -> None:
        """Renew the lease; return when the claim is lost."""
        is_kept = True
        while is_kept:
            await asyncio.sleep(self._terms.renew_seconds)
            with suppress(Unavailable):
                is_kept = await self._attachments.renew(taken.claim, LEASE_SECONDS)


def _error(code: FileErrorCode, filename: str, reason: str) -> FileError:
    return FileError(code=code, message=f"The file '{filename}' cannot be read: {reason}")
