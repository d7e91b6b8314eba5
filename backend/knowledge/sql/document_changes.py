"""Storing, replacing and deleting documents in many transactions; readers see each change whole or not at all."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from backend.foundation.sql.database import Database
from backend.foundation.sql.short_transactions import DivisibleWork, Result, run_in_short_transactions
from backend.knowledge.domain.index_entries import index_entries
from backend.knowledge.domain.knowledge import Chunk, Document
from backend.knowledge.sql import rows, tables
from backend.knowledge.sql.editions import (
    EVERY_WORD,
    Content,
    Edition,
    EditionWriter,
    Overtaken,
    find_chunks,
    find_unseen,
    hold_base,
    numbered_entries,
)
from backend.knowledge.sql.search_index import NumberedEntry, SearchIndex, WordCounts
from shared.clock import Clock
from shared.errors import NotFound, Unavailable
from shared.ids import IdPrefix, new_id

LEFT_BEHIND_AFTER = timedelta(minutes=5)
"""Hundreds of times the pause between two transactions of a running process."""

_base = tables.knowledge_base
_document = tables.document


class _StoredDocument(NamedTuple):
    """A stored document with all its index entries."""

    document: Document
    edition_id: str
    entries: Sequence[NumberedEntry]
    counts: WordCounts

    @property
    def token_count(self) -> int:
        """The number of index tokens of all chunks."""
        return sum(len(entry.tokens) for _, entry in self.entries)


class _NewDocument(NamedTuple):
    """A document that is to be stored, with its index entries."""

    document: Document
    body: bytes
    edition_id: str
    content: Content
    counts: WordCounts


class DocumentChanges:
    """Changes documents. A change that fails, or whose process ends, has no effect; `sweep` deletes its remains."""

    def __init__(self, database: Database, index: SearchIndex, clock: Clock, slice_seconds: float) -> None:
        self._database = database
        self._index = index
        self._clock = clock
        self._slice_seconds = slice_seconds
        self._editions = EditionWriter(index, clock)

    async def put(self, document: Document, body: bytes, chunks: Sequence[Chunk]) -> tuple[Document, bool]:
        """Store a document; it replaces the document of the same name."""
        new = await asyncio.to_thread(self._prepared, document, body, chunks)
        former = await self._find(document.knowledge_base_id, document.name)
        try:
            stored = await self._run(self._put(new, former))
            while stored is None:
                former = await self._find(document.knowledge_base_id, document.name)
                stored = await self._run(self._exchange(new, former))
        except Overtaken:
            raise Unavailable("The document took too long to store.", retry_after_seconds=1) from None
        await self._sweep(document.knowledge_base_id, LEFT_BEHIND_AFTER)
        return stored, former is None

    async def delete(self, base_id: str, name: str) -> bool:
        """Delete a document; False when there was none."""
        while former := await self._find(base_id, name):
            if await self._run(self._withdraw(former)):
                return True
        return False

    async def sweep(self, *, is_only_replica: bool) -> None:
        """Delete unseen editions of processes that ended; for the only replica these are all unseen editions."""
        await self._sweep(None, timedelta(0) if is_only_replica else LEFT_BEHIND_AFTER)

    async def _run(self, steps: DivisibleWork[Result]) -> Result:
        return await run_in_short_transactions(self._database, steps, self._slice_seconds)

    def _put(self, new: _NewDocument, former: _StoredDocument | None) -> DivisibleWork[Document | None]:
        connection = yield
        edition = self._editions.reserve(
            connection, new.document.knowledge_base_id, new.edition_id, len(new.content.chunks)
        )
        yield from self._editions.fill(edition, new.content, new.counts)
        return (yield from self._exchange(new, former))

    def _exchange(self, new: _NewDocument, former: _StoredDocument | None) -> DivisibleWork[Document | None]:
        """Replace the document of the same name and delete its edition; None when it has changed meanwhile."""
        connection = yield
        document = new.document
        if not _is_as_found(connection, document.knowledge_base_id, document.name, former):
            return None
        self._editions.show(connection, new.edition_id)
        columns = {"edition_id": new.edition_id, "body": new.body}
        if former is None:
            connection.execute(insert(_document), {**document.model_dump(), **columns})
        else:
            document = document.model_copy(update={"id": former.document.id})
            is_it = _document.c.id == document.id
            connection.execute(update(_document).where(is_it).values({**document.model_dump(), **columns}))
        _count_change(connection, document.knowledge_base_id, new.content, former)
        if former is not None:
            yield from self._delete_edition(connection, former)
        return document

    def _withdraw(self, former: _StoredDocument) -> DivisibleWork[bool]:
        connection = yield
        document = former.document
        if not _is_as_found(connection, document.knowledge_base_id, document.name, former):
            return False
        connection.execute(delete(_document).where(_document.c.id == document.id))
        _count_change(connection, document.knowledge_base_id, None, former)
        yield from self._delete_edition(connection, former)
        return True

    def _delete_edition(self, connection: Connection, former: _StoredDocument) -> DivisibleWork[None]:
        base_id, numbers = former.document.knowledge_base_id, [number for number, _ in former.entries]
        first, end = (numbers[0], numbers[-1] + 1) if numbers else (0, 0)
        leaving = Edition(former.edition_id, base_id, first, end, EVERY_WORD, is_leaving=True)
        self._editions.hide(connection, leaving)
        yield from self._clear(leaving, former.entries, former.counts)

    def _clear(self, edition: Edition, entries: Sequence[NumberedEntry], counts: WordCounts) -> DivisibleWork[None]:
        """Delete a leaving edition, unless another process deletes it or has deleted the base."""
        with suppress(Overtaken, NotFound):
            yield from self._editions.clear(edition, entries, counts)

    async def _sweep(self, base_id: str | None, after: timedelta) -> None:
        since = self._clock.now() - after
        for edition in await self._database.read(lambda connection: find_unseen(connection, base_id, since)):
            with suppress(Overtaken, NotFound):
                await self._clear_left_behind(edition)

    async def _clear_left_behind(self, found: Edition) -> None:
        edition = await self._database.write(lambda connection: self._editions.take_over(connection, found))
        chunk_rows = await self._database.read(lambda connection: find_chunks(connection, edition.id))
        entries, counts = await asyncio.to_thread(self._indexed, chunk_rows)
        await self._run(self._clear(edition, entries, counts))

    async def _find(self, base_id: str, name: str) -> _StoredDocument | None:
        """Return a document with its index entries, or None."""

        def work(connection: Connection) -> tuple[RowMapping, Sequence[RowMapping]] | None:
            row = _find_row(connection, base_id, name)
            return (row, find_chunks(connection, row["edition_id"])) if row is not None else None

        found = await self._database.read(work)
        if found is None:
            return None
        row, chunk_rows = found
        entries, counts = await asyncio.to_thread(self._indexed, chunk_rows)
        return _StoredDocument(rows.to_document(row), row["edition_id"], entries, counts)

    def _prepared(self, document: Document, body: bytes, chunks: Sequence[Chunk]) -> _NewDocument:
        entries = index_entries(chunks)
        edition_id, counts = new_id(IdPrefix.EDITION), self._index.word_counts(entries)
        return _NewDocument(document, body, edition_id, Content(chunks, entries), counts)

    def _indexed(self, chunk_rows: Sequence[RowMapping]) -> tuple[list[NumberedEntry], WordCounts]:
        entries = numbered_entries(chunk_rows)
        return entries, self._index.word_counts([entry for _, entry in entries])


def _find_row(connection: Connection, base_id: str, name: str) -> RowMapping | None:
    query = select(*rows.DOCUMENT_COLUMNS, _document.c.edition_id)
    is_it = (_document.c.knowledge_base_id == base_id) & (_document.c.name == name)
    return connection.execute(query.where(is_it)).mappings().first()


def _is_as_found(connection: Connection, base_id: str, name: str, former: _StoredDocument | None) -> bool:
    """Lock the base; return whether the document is still the one that was found."""
    hold_base(connection, base_id)
    row = _find_row(connection, base_id, name)
    return (row["edition_id"] if row is not None else None) == (former.edition_id if former is not None else None)


def _count_change(connection: Connection, base_id: str, added: Content | None, removed: _StoredDocument | None) -> None:
    grown_chunks = grown_tokens = 0
    if added is not None:
        grown_chunks, grown_tokens = len(added.chunks), added.token_count
    if removed is not None:
        grown_chunks, grown_tokens = grown_chunks - len(removed.entries), grown_tokens - removed.token_count
    connection.execute(
        update(_base)
        .where(_base.c.id == base_id)
        .values(
            version=_base.c.version + 1,
            chunk_count=_base.c.chunk_count + grown_chunks,
            index_token_count=_base.c.index_token_count + grown_tokens,
        )
    )
