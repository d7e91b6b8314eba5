"""Storing, reading, searching, listing and deleting the documents of a base."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

from backend.extraction.domain.chunking import readable_text
from backend.extraction.domain.media_types import READER_VERSIONS, charset_of, media_type_of
from backend.extraction.ports import DocumentReader, ReadableFile
from backend.foundation.services.steps import sha256_of
from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import Binding, Document, require_read, require_write
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.knowledge_access import find_binding
from backend.search.domain.chunks import Chunk, ChunkHit
from backend.search.domain.filters import Filter
from backend.search.ports.index import Retrieval
from shared.clock import Clock
from shared.errors import InvalidRequest, NotFound
from shared.ids import IdPrefix, new_id

MAX_BYTES_READ_HERE = 262_144
"""The text of a larger document is put together in a thread."""


class TextPage(NamedTuple):
    """A range of a document's text; offsets count characters."""

    document: Document
    text: str
    offset: int
    total_characters: int

    @property
    def next_offset(self) -> int | None:
        """Where the next page begins; None at the end."""
        end = self.offset + len(self.text)
        return end if end < self.total_characters else None


async def text_page(store: KnowledgeStore, document: Document, offset: int, limit: int) -> TextPage:
    """Return up to `limit` characters of a document's text from `offset`; the caller has checked who reads it.

    Raises:
        NotFound: the document was deleted meanwhile.
    """
    body, chunks = await store.document_body(document.id), await store.chunks(document.id)

    def page() -> TextPage:
        text = readable_text(document.media_type, body, chunks)
        return TextPage(document, text[offset : offset + limit], offset, len(text))

    return await asyncio.to_thread(page) if document.size_bytes > MAX_BYTES_READ_HERE else page()


class DocumentPage(NamedTuple):
    """Some documents of a base, and whether there are more behind them."""

    binding: Binding
    documents: tuple[Document, ...]
    has_more: bool


class ChunkPage(NamedTuple):
    """Some chunks of a document, and whether there are more behind them."""

    chunks: tuple[Chunk, ...]
    has_more: bool


class KnowledgeDocuments:
    """The documents of bases.

    Every method raises NotFound for a caller who is not a member, and PermissionDenied for a role without this right.
    """

    def __init__(self, store: KnowledgeStore) -> None:
        self._store = store

    async def page(
        self, caller: Caller, base_id: str, *, after: str | None, limit: int, descending: bool
    ) -> DocumentPage:
        """Return up to `limit` documents by name.

        Raises:
            NotFound: `after` names no document of the base.
        """
        binding = await find_binding(self._store, caller, base_id)
        require_read(binding)
        found = await self._store.documents(base_id, after=after, limit=limit + 1, descending=descending)
        return DocumentPage(binding, found[:limit], len(found) > limit)

    async def chunks(self, caller: Caller, base_id: str, name: str, *, after: str | None, limit: int) -> ChunkPage:
        """Return up to `limit` chunks of the document with this name, in its order.

        Raises:
            NotFound: there is no such document, or `after` names no chunk of it.
        """
        require_read(await find_binding(self._store, caller, base_id))
        document = await self._find_named(base_id, name, "document")
        found = await self._store.chunks(document.id, after=after, limit=limit + 1)
        return ChunkPage(found[:limit], len(found) > limit)

    async def read(self, caller: Caller, base_id: str, name: str) -> tuple[Document, bytes]:
        """Return a document and its bytes.

        Raises:
            NotFound: there is no such document.
        """
        require_read(await find_binding(self._store, caller, base_id))
        document = await self._find_named(base_id, name, "name")
        return document, await self._store.document_body(document.id)

    async def text(self, caller: Caller, base_id: str, named: str, *, offset: int, limit: int) -> TextPage:
        """Return up to `limit` characters from `offset` of the text of the document with this name or id.

        Raises:
            NotFound: there is no such document.
        """
        require_read(await find_binding(self._store, caller, base_id))
        document = await self._store.find_document(base_id, named) or await self._with_id(base_id, named)
        if document is None:
            raise NotFound("There is no such document.", param="document")
        return await text_page(self._store, document, offset, limit)

    async def _with_id(self, base_id: str, document_or_file_id: str) -> Document | None:
        found = await self._store.documents_from([document_or_file_id])
        return next((document for document in found if document.knowledge_base_id == base_id), None)

    async def delete(self, caller: Caller, base_id: str, name: str) -> Document:
        """Delete a document and return its values.

        Raises:
            NotFound: there is no such document.
        """
        require_write(await find_binding(self._store, caller, base_id))
        document = await self._find_named(base_id, name, "name")
        if not await self._store.delete_document(base_id, name):
            raise NotFound("There is no such document.", param="name")
        return document

    async def _find_named(self, base_id: str, name: str, param: str) -> Document:
        document = await self._store.find_document(base_id, name)
        if document is None:
            raise NotFound("There is no such document.", param=param)
        return document


MAX_RESULTS = 50


class SearchKnowledge:
    """Finds chunks for members who may read them."""

    def __init__(self, store: KnowledgeStore, retrieval: Retrieval) -> None:
        self._store = store
        self._retrieval = retrieval

    async def search(
        self, caller: Caller, base_id: str, query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Return the best chunks, best first.

        Raises:
            NotFound: the caller is not a member.
            PermissionDenied: the caller is restricted.
        """
        return await self.search_in([await find_binding(self._store, caller, base_id)], query, limit, filters)

    async def search_in(
        self, bindings: Sequence[Binding], query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        """Return the best chunks of all these bases together, best first.

        Raises:
            PermissionDenied: the caller is restricted in one of them.
        """
        for binding in bindings:
            require_read(binding)
        return await self._retrieval.search([binding.base.id for binding in bindings], query, limit, filters)


MAX_NAME_CHARACTERS = 512


class NewDocument(NamedTuple):
    """A document as a client sends it; `content_type` is its header, and `modified_at` told, where it sent one."""

    name: str
    content_type: str | None
    body: bytes | bytearray
    modified_at: int | None = None


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
        digest = await sha256_of(new.body)
        earlier = await self._store.find_document(base_id, new.name)
        charset = charset_of(new.content_type)
        is_same = earlier is not None and (earlier.sha256, earlier.media_type) == (digest, media_type)
        if earlier is not None and is_same and charset in (None, "utf-8"):
            return earlier, False
        document_id = new_id(IdPrefix.DOCUMENT)
        file = ReadableFile(caller.tenant, caller.user_id, document_id, media_type, new.body, charset, True)
        async with self._reader.read(file) as cut:
            document = Document(
                id=document_id,
                knowledge_base_id=base_id,
                name=new.name,
                media_type=media_type,
                sha256=digest,
                size_bytes=len(new.body),
                chunk_count=cut.chunk_count,
                notes=cut.notes,
                unread_pictures=cut.unread_pictures,
                reader_version=READER_VERSIONS[media_type],
                attributes={} if new.modified_at is None else {"modified_at": new.modified_at},
                charset=charset,
                created_at=self._clock.now(),
            )
            return await self._store.put_document(document, new.body, cut.batches)


def _check_name(name: str) -> None:
    if not name or len(name) > MAX_NAME_CHARACTERS or not name.isprintable() or name != name.strip():
        raise InvalidRequest(
            f"A document's name must be 1 to {MAX_NAME_CHARACTERS} printable characters without blanks around them.",
            param="name",
        )
