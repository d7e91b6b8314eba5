"""Documents and their chunks in SQL, the search index written in the same transaction."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, collate, delete, insert, select, update

from backend.adapters.sql.aside import compute_aside
from backend.adapters.sql.database import Database
from backend.adapters.sql.knowledge import rows, tables
from backend.adapters.sql.knowledge.indexes import IndexOf
from backend.adapters.sql.knowledge.search_index import NumberedEntry, SearchIndex
from backend.adapters.sql.prepared import Prepared
from backend.domain.index_entries import index_entries
from backend.domain.knowledge import Chunk, Document
from shared.errors import NotFound

_base = tables.knowledge_base
_document = tables.document
_chunk = tables.chunk

# By code point on both databases: SQLite compares bytes unless told otherwise, and "C" makes PostgreSQL do so.
_BY_NAME = {"sqlite": collate(_document.c.name, "BINARY"), "postgresql": collate(_document.c.name, "C")}

_ADD_CHUNK = Prepared(insert(_chunk))

_PUT_TIMEOUT_SECONDS = 300.0
"""The largest documents make a million index rows."""


class SqlDocumentStore:
    """The part of the `KnowledgeStore` that has to do with documents."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._index = IndexOf(database)
        self._name = _BY_NAME[database.dialect]

    async def put_document(self, document: Document, body: bytes, chunks: Sequence[Chunk]) -> None:
        """Store a document with its chunks and index entries, replacing its namesake."""
        base_id = document.knowledge_base_id
        entries = await asyncio.to_thread(index_entries, chunks)
        index = await self._index()

        def work(connection: Connection) -> None:
            first_number = hold_base(connection, base_id)
            removed = _take_out(connection, index, base_id, document.name) or []
            added = [NumberedEntry(number, entry) for number, entry in enumerate(entries, first_number)]
            connection.execute(insert(_document), {**document.model_dump(), "body": body})
            chunk_rows = [
                rows.chunk_parameters(document, chunk, number) for chunk, (number, _) in zip(chunks, added, strict=True)
            ]
            if chunk_rows:
                _ADD_CHUNK.change(connection, *chunk_rows)
            index.add(connection, base_id, added)
            _count_change(connection, base_id, added, removed)

        await self._database.write(work, timeout_seconds=_PUT_TIMEOUT_SECONDS)

    async def delete_document(self, base_id: str, name: str) -> bool:
        """Delete a document with its chunks and index entries; False when there was none."""
        index = await self._index()

        def work(connection: Connection) -> bool:
            hold_base(connection, base_id)
            removed = _take_out(connection, index, base_id, name)
            if removed is not None:
                _count_change(connection, base_id, [], removed)
            return removed is not None

        return await self._database.write(work)

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
        query = select(*rows.CHUNK_COLUMNS).where(_chunk.c.document_id == document_id).order_by(_chunk.c.ordinal)

        def work(connection: Connection) -> tuple[Chunk, ...]:
            return tuple(rows.to_chunk(row) for row in connection.execute(query).mappings())

        return await self._database.read(work)


def _numbered_entries(found: Sequence[RowMapping]) -> list[NumberedEntry]:
    entries = index_entries(rows.to_chunk(row) for row in found)
    return [NumberedEntry(row["number"], entry) for row, entry in zip(found, entries, strict=True)]


def hold_base(connection: Connection, base_id: str) -> int:
    """Make others who write to the base wait; return the number of its next chunk.

    Raises:
        NotFound: there is no such base.
    """
    query = select(_base.c.next_chunk_number).where(_base.c.id == base_id).with_for_update()
    row = connection.execute(query).first()
    if row is None:
        raise NotFound("There is no such knowledge base.")
    return row[0]


def _documents() -> Select[Any]:
    return select(*rows.DOCUMENT_COLUMNS)


def _take_out(connection: Connection, index: SearchIndex, base_id: str, name: str) -> list[NumberedEntry] | None:
    """Delete a document; return the entries that left the index, or None when there was no document."""
    document = _find(connection, base_id, name)
    if document is None:
        return None
    query = select(*rows.CHUNK_COLUMNS, _chunk.c.number).where(_chunk.c.document_id == document.id)
    found = connection.execute(query).mappings().all()
    removed = compute_aside(connection, partial(_numbered_entries, found))
    index.remove(connection, base_id, removed)
    connection.execute(delete(_document).where(_document.c.id == document.id))
    return removed


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


def _count_change(
    connection: Connection, base_id: str, added: Sequence[NumberedEntry], removed: Sequence[NumberedEntry]
) -> None:
    grown_tokens = sum(len(entry.tokens) for _, entry in added) - sum(len(entry.tokens) for _, entry in removed)
    connection.execute(
        update(_base)
        .where(_base.c.id == base_id)
        .values(
            version=_base.c.version + 1,
            chunk_count=_base.c.chunk_count + len(added) - len(removed),
            index_token_count=_base.c.index_token_count + grown_tokens,
            next_chunk_number=_base.c.next_chunk_number + len(added),
        )
    )
