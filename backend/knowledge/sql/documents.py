"""Documents and their chunks in SQL."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Select, collate, select

from backend.foundation.sql.database import Database
from backend.foundation.sql.short_transactions import SLICE_SECONDS
from backend.knowledge.domain.knowledge import Chunk, Document
from backend.knowledge.sql import rows, tables
from backend.knowledge.sql.chosen import ChosenIndex
from backend.knowledge.sql.document_changes import DocumentChanges
from shared.clock import Clock
from shared.errors import NotFound

_document = tables.document
_chunk = tables.chunk

# By code point on both databases: SQLite compares bytes unless told otherwise, and "C" makes PostgreSQL do so.
_BY_NAME = {"sqlite": collate(_document.c.name, "BINARY"), "postgresql": collate(_document.c.name, "C")}


class SqlDocumentStore:
    """The part of the `KnowledgeStore` that has to do with documents.

    `goes_with_base` are other rooms' statements, run in the transaction that deletes a base, before its row goes.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        slice_seconds: float = SLICE_SECONDS,
        goes_with_base: Sequence[Callable[[Connection, str], None]] = (),
    ) -> None:
        self._database = database
        self._index = ChosenIndex(database)
        self._clock = clock
        self._slice_seconds = slice_seconds
        self._goes_with_base = goes_with_base
        self._name = _BY_NAME[database.dialect]

    async def put_document(self, document: Document, body: bytes, chunks: Sequence[Chunk]) -> tuple[Document, bool]:
        """Store a document with its chunks and index entries, in the place of its namesake where there is one."""
        return await (await self._changes()).put(document, body, chunks)

    async def delete_document(self, base_id: str, name: str) -> bool:
        """Delete a document with its chunks and index entries; False when there was none."""
        return await (await self._changes()).delete(base_id, name)

    async def sweep(self, *, is_only_replica: bool) -> None:
        """Remove what was left behind by processes that died while they put or deleted documents."""
        await (await self._changes()).sweep(is_only_replica=is_only_replica)

    async def document(self, document_id: str) -> Document | None:
        """Return a document by its id, or None."""

        def work(connection: Connection) -> Document | None:
            row = connection.execute(_documents().where(_document.c.id == document_id)).mappings().first()
            return rows.to_document(row) if row is not None else None

        return await self._database.read(work)

    async def find_document(self, base_id: str, name: str) -> Document | None:
        """Return a document by its name, or None."""

        def work(connection: Connection) -> Document | None:
            return _find(connection, base_id, name)

        return await self._database.read(work)

    async def document_body(self, document_id: str) -> bytes:
        """Return the bytes that were put."""

        def work(connection: Connection) -> bytes | None:
            return connection.execute(select(_document.c.body).where(_document.c.id == document_id)).scalar()

        body = await self._database.read(work)
        if body is None:
            raise NotFound("There is no such document.")
        return body

    async def documents(self, base_id: str, *, after: str | None, limit: int, descending: bool) -> tuple[Document, ...]:
        """Return documents ordered by name, behind the document id `after`."""
        query = _documents().where(_document.c.knowledge_base_id == base_id)
        query = query.order_by(self._name.desc() if descending else self._name).limit(limit)

        def work(connection: Connection) -> tuple[Document, ...]:
            if after is None:
                page = query
            else:
                name = _name_in_base(connection, base_id, after)
                page = query.where(self._name < name if descending else self._name > name)
            return tuple(rows.to_document(row) for row in connection.execute(page).mappings())

        return await self._database.read(work)

    async def all_documents(self, base_ids: Sequence[str]) -> tuple[Document, ...]:
        """Return the documents of these bases, ordered by base id and name."""
        query = _documents().where(_document.c.knowledge_base_id.in_(base_ids))

        def work(connection: Connection) -> list[Document]:
            return [rows.to_document(row) for row in connection.execute(query).mappings()]

        return tuple(sorted(await self._database.read(work), key=lambda found: (found.knowledge_base_id, found.name)))

    async def chunks(self, document_id: str) -> tuple[Chunk, ...]:
        """Return the chunks of a document in document order."""
        query = select(*rows.CHUNK_COLUMNS).join_from(_document, _chunk, rows.IS_OF_DOCUMENT)
        query = query.where(_document.c.id == document_id).order_by(_chunk.c.ordinal)

        def work(connection: Connection) -> tuple[Chunk, ...]:
            return tuple(rows.to_chunk(row, document_id) for row in connection.execute(query).mappings())

        return await self._database.read(work)

    async def _changes(self) -> DocumentChanges:
        return DocumentChanges(self._database, await self._index(), self._clock, self._slice_seconds)


def _documents() -> Select[Any]:
    return select(*rows.DOCUMENT_COLUMNS)


def _find(connection: Connection, base_id: str, name: str) -> Document | None:
    query = _documents().where(_document.c.knowledge_base_id == base_id, _document.c.name == name)
    row = connection.execute(query).mappings().first()
    return rows.to_document(row) if row is not None else None


def _name_in_base(connection: Connection, base_id: str, document_id: str) -> str:
    query = select(_document.c.name).where(_document.c.knowledge_base_id == base_id, _document.c.id == document_id)
    name = connection.execute(query).scalar()
    if name is None:
        raise NotFound("There is no such document.", param="after")
    return name
