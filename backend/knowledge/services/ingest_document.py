"""Storing a document in a base: read it, cut it into chunks, index them."""

import asyncio
from hashlib import sha256
from typing import NamedTuple
from weakref import WeakValueDictionary

from backend.extraction.domain.media_types import media_type_of
from backend.extraction.ports import DocumentReader, ReadableFile
from backend.identity.domain import Caller
from backend.knowledge.domain.access import require_write
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.knowledge_access import find_binding
from shared.clock import Clock
from shared.errors import InvalidRequest
from shared.ids import IdPrefix, new_id

MAX_NAME_CHARACTERS = 512
MAX_BYTES_HASHED_HERE = 1_000_000
"""More would hold the event loop for more than a millisecond."""


class NewDocument(NamedTuple):
    """A document as a client sends it; `content_type` is its header, where it sent one."""

    name: str
    content_type: str | None
    body: bytes | bytearray


class IngestDocument:
    """Stores documents with their chunks. The same bytes under the same name again change nothing."""

    def __init__(self, store: KnowledgeStore, reader: DocumentReader, clock: Clock) -> None:
        self._store = store
        self._reader = reader
        self._clock = clock
        self._name_locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def put(self, caller: Caller, base_id: str, new: NewDocument) -> tuple[Document, bool]:
        """Store a document; return it as stored, and whether its name is new. A replaced one keeps its id.

        Concurrent calls for the same name run one after another in this process.

        Raises:
            NotFound: the caller is not a member.
            PermissionDenied: the caller may not write.
            InvalidRequest: the name or the document is invalid; `param` names which.
            Unavailable: too many documents are waiting to be read. Retryable.
        """
        require_write(await find_binding(self._store, caller, base_id))
        _check_name(new.name)
        lock = self._name_locks.setdefault((base_id, new.name), asyncio.Lock())
        async with lock:
            return await self._put(caller, base_id, new)

    async def _put(self, caller: Caller, base_id: str, new: NewDocument) -> tuple[Document, bool]:
        media_type = media_type_of(new.content_type, new.name, new.body)
        is_long = len(new.body) > MAX_BYTES_HASHED_HERE
        digest = (await asyncio.to_thread(sha256, new.body) if is_long else sha256(new.body)).hexdigest()
        earlier = await self._store.find_document(base_id, new.name)
        if earlier is not None and (earlier.sha256, earlier.media_type) == (digest, media_type):
            return earlier, False
        document_id = new_id(IdPrefix.DOCUMENT)
        file = ReadableFile(caller.tenant, caller.user_id, document_id, media_type, new.body)
        async with self._reader.read(file) as cut:
            document = Document(
                id=document_id,
                knowledge_base_id=base_id,
                name=new.name,
                media_type=media_type,
                sha256=digest,
                size_bytes=len(new.body),
                chunk_count=cut.chunk_count,
                created_at=self._clock.now(),
            )
            return await self._store.put_document(document, new.body, cut.batches)


def _check_name(name: str) -> None:
    if not name or len(name) > MAX_NAME_CHARACTERS or not name.isprintable() or name != name.strip():
        raise InvalidRequest(
            f"A document's name must be 1 to {MAX_NAME_CHARACTERS} printable characters without blanks around them.",
            param="name",
        )
