"""Documents and their chunks in SQL."""

from collections.abc import AsyncIterable, Callable, Mapping, Sequence

from sqlalchemy import Connection, collate, delete, func, or_, select

from backend.foundation.sql.database import Database
from backend.foundation.sql.short_transactions import SLICE_SECONDS
from backend.knowledge.domain.attachments import AttachmentClaim
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.sql import rows, tables
from backend.knowledge.sql.document_changes import Content, DeletionHook, DocumentChanges
from backend.knowledge.sql.editions import SearchIndexInDatabase
from backend.knowledge.sql.maintenance import Maintenance
from backend.search.domain.chunks import Chunk, chunk_in
from shared.clock import Clock
from shared.errors import NotFound

_document = tables.document
_chunk = tables.chunk
_DOCUMENTS = select(*rows.DOCUMENT_COLUMNS)

"""Deletes what another package keeps about the knowledge base of this id."""

# Both databases order names by code point: collation BINARY of SQLite and collation "C" of PostgreSQL compare bytes.
_BY_NAME = {"sqlite": collate(_document.c.name, "BINARY"), "postgresql": collate(_document.c.name, "C")}


class SqlDocumentStore:
    """The part of the `KnowledgeStore` that stores documents.

    `deletion_hooks` are functions of other packages; each runs in the transaction that deletes a base or a document,
    with its id, and deletes or marks what that package stores about it. `on_change` is called with the id of
    each base whose documents, or permission to be embedded, have changed.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        index: SearchIndexInDatabase,
        slice_seconds: float = SLICE_SECONDS,
        deletion_hooks: Sequence[DeletionHook] = (),
        on_change: Callable[[str], None] | None = None,
    ) -> None:
        self._database = database
        self._slice_seconds = slice_seconds
        self._changes = DocumentChanges(database, clock, index, slice_seconds, deletion_hooks)
        self._index = index
        self.maintenance = Maintenance(database, self._changes, index, slice_seconds)
        self._deletion_hooks = deletion_hooks
        self._note_change = on_change or index.note_change
        self._name = _BY_NAME[database.dialect]

    async def put_document(
        self,
        document: Document,
        body: bytes | bytearray,
        batches: AsyncIterable[Sequence[Chunk]],
        claim: AttachmentClaim | None = None,
        *,
        instead_of: Document | None = None,
    ) -> tuple[Document, bool]:
        """Store a document with its indexed chunks; without a claim it replaces the document of the same name."""
        stored = await self._changes.put(Content(document, body, claim, instead_of), batches)
        self._note_change(document.knowledge_base_id)
        return stored

    async def delete_document(self, base_id: str, name: str, source_id: str | None = None) -> bool:
        """Delete a document with its chunks; False when there was none."""
        is_deleted = await self._changes.delete(base_id, name, source_id)
        self._note_change(base_id)
        return is_deleted

    async def documents_from(self, source_ids: Sequence[str]) -> tuple[Document, ...]:
        """Return the documents that have one of these ids, or were read from a file that has; ordered by base."""
        is_one = _document.c.id.in_(source_ids) | _document.c.file_id.in_(source_ids)
        query = _DOCUMENTS.where(is_one).order_by(_document.c.knowledge_base_id, _document.c.id)
        found = await self._database.read(lambda connection: connection.execute(query).mappings().all())
        return tuple(map(rows.to_document, found))

    async def find_outdated(self, versions: Mapping[str, int], *, reads_pictures: bool = False) -> tuple[str, ...]:
        """Return the ids of documents whose text an earlier reader has made, or that have pictures left to read."""
        known = func.coalesce(_document.c.reader_version, 0)
        is_outdated = or_(*((_document.c.media_type == of) & (known < version) for of, version in versions.items()))
        if reads_pictures:
            is_outdated |= _document.c.unread_pictures > 0
        query = select(_document.c.id).where(is_outdated).order_by(_document.c.id)
        return tuple(await self._database.read(lambda connection: connection.execute(query).scalars().all()))

    async def withdraw_file(self, file_id: str) -> None:
        """Delete what was made of an uploaded file, in all bases."""
        is_its = tables.attachment.c.file_id == file_id
        await self._database.write(lambda connection: connection.execute(delete(tables.attachment).where(is_its)))
        for document in await self.documents_from([file_id]):
            await self.delete_document(document.knowledge_base_id, document.name, document.source_id)

    async def find_document(self, base_id: str, name: str) -> Document | None:
        """Return a document by its name, or None."""
        query = _DOCUMENTS.where(_document.c.knowledge_base_id == base_id, _document.c.name == name)
        row = await self._database.read(lambda connection: connection.execute(query).mappings().first())
        return rows.to_document(row) if row is not None else None

    async def document_body(self, document_id: str) -> bytes:
        """Return the stored bytes."""
        query = select(_document.c.body).where(_document.c.id == document_id)
        body: bytes | None = await self._database.read(lambda connection: connection.execute(query).scalar())
        if body is None:
            raise NotFound("There is no such document.")
        return body

    async def documents(self, base_id: str, *, after: str | None, limit: int, descending: bool) -> tuple[Document, ...]:
        """Return documents ordered by name, behind the document id `after`."""
        query = _DOCUMENTS.where(_document.c.knowledge_base_id == base_id)
        query = query.order_by(self._name.desc() if descending else self._name).limit(limit)

        def work(connection: Connection) -> tuple[Document, ...]:
            if after is None:
                page = query
            else:
                name = _name_in_base(connection, base_id, after)
                page = query.where(self._name < name if descending else self._name > name)
            return tuple(rows.to_document(row) for row in connection.execute(page).mappings())

        return await self._database.read(work)

    async def count_documents(self, base_ids: Sequence[str]) -> Mapping[str, int]:
        """Return the numbers of documents of these bases; a base without any is left out."""
        base_id = _document.c.knowledge_base_id
        query = select(base_id, func.count()).where(base_id.in_(base_ids)).group_by(base_id)
        found = await self._database.read(lambda connection: connection.execute(query).all())
        return {row[0]: row[1] for row in found}

    async def all_documents(self, base_ids: Sequence[str]) -> tuple[Document, ...]:
        """Return the documents of these bases, ordered by base id and name."""
        query = _DOCUMENTS.where(_document.c.knowledge_base_id.in_(base_ids))
        found = await self._database.read(lambda c: [rows.to_document(row) for row in c.execute(query).mappings()])
        return tuple(sorted(found, key=lambda one: (one.knowledge_base_id, one.name)))

    async def chunks(
        self, document_id: str, *, after: str | None = None, limit: int | None = None
    ) -> tuple[Chunk, ...]:
        """Return the chunks of a document in document order, behind the chunk id `after`."""
        query = select(*rows.CHUNK_COLUMNS).join_from(_document, _chunk, rows.IS_OF_DOCUMENT)
        query = query.where(_document.c.id == document_id).order_by(_chunk.c.ordinal).limit(limit)

        def work(connection: Connection) -> tuple[Chunk, ...]:
            page = query
            if after is not None:
                page = query.where(_chunk.c.ordinal > _ordinal_in_document(connection, document_id, after))
            return tuple(chunk_in(row, document_id) for row in connection.execute(page).mappings())

        # Large documents have thousands of chunks: on SQLite their rows are converted in the thread that reads them.
        return await self._database.read(work)

    async def token_counts(self, document_ids: Sequence[str]) -> Mapping[str, int]:
        """Add up the tokens of the chunks of each document."""
        query = select(_document.c.id, func.sum(_chunk.c.tokens)).join_from(_document, _chunk, rows.IS_OF_DOCUMENT)
        query = query.where(_document.c.id.in_(document_ids)).group_by(_document.c.id)
        found = await self._database.read(lambda connection: connection.execute(query).all())
        return {document_id: int(tokens) for document_id, tokens in found}


def _name_in_base(connection: Connection, base_id: str, document_id: str) -> str:
    query = select(_document.c.name).where(_document.c.knowledge_base_id == base_id, _document.c.id == document_id)
    name = connection.execute(query).scalar()
    if name is None:
        raise NotFound("There is no such document.", param="after")
    return name


def _ordinal_in_document(connection: Connection, document_id: str, chunk_id: str) -> int:
    query = select(_chunk.c.ordinal).join_from(_document, _chunk, rows.IS_OF_DOCUMENT)
    ordinal = connection.execute(query.where(_document.c.id == document_id, _chunk.c.id == chunk_id)).scalar()
    if ordinal is None:
        raise NotFound("There is no such chunk of this document.", param="after")
    return ordinal
