"""Storing, replacing and deleting documents in many transactions; readers see each change whole or not at all."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select, update

from backend.foundation.sql.database import Database, compute_off_event_loop
from backend.foundation.sql.short_transactions import (
    LEFT_BEHIND_AFTER,
    DivisibleWork,
    Result,
    run_in_short_transactions,
)
from backend.knowledge.domain.attachments import AttachmentClaim
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.sql import rows, tables
from backend.knowledge.sql.attachment_queue import complete
from backend.knowledge.sql.editions import (
    Edition,
    EditionWriter,
    Overtaken,
    SearchIndexInDatabase,
    find_unseen,
    hold_base,
    numbers_of,
)
from backend.search.domain.chunks import Chunk, Range, attributes_in, chunk_in
from backend.search.domain.tokenizing import tokenize
from shared.clock import Clock
from shared.errors import BallastError, Conflict, NotFound, Unavailable
from shared.ids import IdPrefix, new_id

_base = tables.knowledge_base
_document = tables.document
_chunk = tables.chunk


Batch = Sequence[Chunk]
DeletionHook = Callable[[Connection, str], None]
_TOOK_TOO_LONG = "The document took too long to store."


class _StoredDocument(NamedTuple):
    """A stored document and what it takes up in its base."""

    document: Document
    edition_id: str
    numbers: Range
    token_count: int


class Content(NamedTuple):
    """What is to be stored: a document, its bytes, and the claim on the attached file that it is read from.

    `instead_of` is the only document that it may replace, where there is one.
    """

    document: Document
    body: bytes | bytearray
    claim: AttachmentClaim | None = None
    instead_of: Document | None = None


class _StoredChunks(NamedTuple):
    """The chunks of a document, stored and not yet seen."""

    edition: Edition
    token_count: int


class DocumentChanges:
    """Changes documents. A change that fails, or whose process ends, has no effect; `sweep` deletes its remains."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        index: SearchIndexInDatabase,
        slice_seconds: float,
        hooks: Sequence[DeletionHook] = (),
    ) -> None:
        self._hooks = hooks
        self._database = database
        self._clock = clock
        self._slice_seconds = slice_seconds
        self._index = index
        self._editions = EditionWriter(index, clock)

    async def put(self, content: Content, batches: AsyncIterable[Batch]) -> tuple[Document, bool]:
        """Store a document; it replaces the document of the same name, or, with a claim, takes a name of its own."""
        iterator = aiter(batches)
        first, second = await anext(iterator, None), await anext(iterator, None)
        if first is not None and second is None:
            stored = await self._put_at_once(content, first)
        else:
            read = tuple(chunks for chunks in (first, second) if chunks is not None)
            stored = await self._put_in_parts(content, _chain(read, iterator))
        await self._sweep(content.document.knowledge_base_id, LEFT_BEHIND_AFTER)
        return stored

    async def _put_at_once(self, content: Content, chunks: Batch) -> tuple[Document, bool]:
        """Store a short document, in one transaction unless that takes long."""
        document, edition_id = content.document, new_id(IdPrefix.EDITION)
        new = await self._index.prepare(chunks)

        def work(former: _StoredDocument | None) -> DivisibleWork[_StoredChunks | Document]:
            connection = yield
            edition = self._editions.reserve(connection, document.knowledge_base_id, edition_id, document.chunk_count)
            connection = yield
            self._editions.fill(connection, edition, 0, new)
            written = _StoredChunks(edition, new.token_count)
            return (yield from self._exchange(content, written, former)) or written

        former = await self._former(content)
        try:
            stored = await self._run(work(former))
        except Overtaken:
            raise Unavailable(_TOOK_TOO_LONG, retry_after_seconds=1) from None
        if isinstance(stored, Document):
            return stored, former is None
        return await self._show(content, stored)

    async def _put_in_parts(self, content: Content, batches: AsyncIterable[Batch]) -> tuple[Document, bool]:
        """Store a document a batch at a time; where that fails, what was stored is deleted."""
        document = content.document
        base_id, edition_id = document.knowledge_base_id, new_id(IdPrefix.EDITION)
        edition = await self._database.write(
            lambda connection: self._editions.reserve(connection, base_id, edition_id, document.chunk_count)
        )
        try:
            return await self._show(content, await self._fill(edition, batches))
        except (BallastError, Overtaken, asyncio.CancelledError) as error:
            await self._discard(edition)
            if isinstance(error, Overtaken):
                raise Unavailable(_TOOK_TOO_LONG, retry_after_seconds=1) from None
            raise

    async def _show(self, content: Content, new: _StoredChunks) -> tuple[Document, bool]:
        """Let the document name its new edition, however often others change it meanwhile."""
        while True:
            former = await self._former(content)
            if (stored := await self._run(self._exchange(content, new, former))) is not None:
                return stored, former is None

    async def delete(self, base_id: str, name: str, source_id: str | None = None) -> bool:
        """Delete a document, that of a source where one is named; False when there was none."""
        while former := await self._find(base_id, name):
            if source_id not in (None, former.document.source_id):
                return False
            if await self._run(self._withdraw(former)):
                return True
        return False

    async def sweep(self, *, is_only_replica: bool) -> None:
        """Delete unseen editions of processes that ended; for the only replica these are all unseen editions."""
        await self._sweep(None, timedelta(0) if is_only_replica else LEFT_BEHIND_AFTER)

    async def _run(self, steps: DivisibleWork[Result]) -> Result:
        return await run_in_short_transactions(self._database, steps, self._slice_seconds)

    async def _fill(self, edition: Edition, batches: AsyncIterable[Batch]) -> _StoredChunks:
        """Store the chunks."""
        offset = token_count = 0
        async for chunks in batches:
            new = await self._index.prepare(chunks)
            await self._database.write(partial(self._editions.fill, edition=edition, written=offset, new=new))
            offset += len(chunks)
            token_count += new.token_count
        return _StoredChunks(edition, token_count)

    def _exchange(
        self, content: Content, new: _StoredChunks, former: _StoredDocument | None
    ) -> DivisibleWork[Document | None]:
        """Replace the document of the same name and delete its edition; None when it has changed meanwhile."""
        connection = yield
        document = content.document
        if content.claim is not None:
            document = complete(connection, document, content.claim)
        if not _is_as_found(connection, document.knowledge_base_id, document.name, former):
            return None
        self._editions.show(connection, new.edition.id)
        columns = {
            "edition_id": new.edition.id,
            "indexed_edition_id": new.edition.id,
            "index_token_count": new.token_count,
            "body": content.body,
        }
        if former is None:
            connection.execute(insert(_document), {**rows.document_parameters(document), **columns})
        else:
            is_it = _document.c.id == former.document.id
            # They may have been changed since the document was found: they are no part of its edition.
            attributes = attributes_in(connection.execute(select(_document.c.attributes).where(is_it)).scalar_one())
            kept = {"id": former.document.id, "attributes": {**attributes, **document.attributes}}
            document = document.model_copy(update=kept)
            connection.execute(update(_document).where(is_it).values({**rows.document_parameters(document), **columns}))
        left = (former.document.chunk_count, former.token_count) if former is not None else (0, 0)
        _count_change(connection, document.knowledge_base_id, document.chunk_count - left[0], new.token_count - left[1])
        if former is not None:
            yield from self._delete_edition(connection, former)
        return document

    def _withdraw(self, former: _StoredDocument) -> DivisibleWork[bool]:
        connection = yield
        document = former.document
        if not _is_as_found(connection, document.knowledge_base_id, document.name, former):
            return False
        connection.execute(delete(_document).where(_document.c.id == document.id))
        for hook in self._hooks:
            hook(connection, document.id)
        _count_change(connection, document.knowledge_base_id, -document.chunk_count, -former.token_count)
        yield from self._delete_edition(connection, former)
        return True

    def _delete_edition(self, connection: Connection, former: _StoredDocument) -> DivisibleWork[None]:
        leaving = Edition(former.edition_id, former.document.knowledge_base_id, former.numbers, is_leaving=True)
        self._editions.hide(connection, leaving)
        yield from self._clear(leaving)

    def _clear(self, edition: Edition) -> DivisibleWork[None]:
        """Delete a leaving edition, unless another process deletes it or has deleted the base."""
        with suppress(Overtaken, NotFound):
            yield from self._editions.clear(edition)

    async def _discard(self, edition: Edition) -> None:
        """Delete what was stored of a document that is not to be, as far as the database is there."""
        with suppress(Unavailable, Overtaken, NotFound):
            await self._clear_left_behind(edition)

    async def _sweep(self, base_id: str | None, after: timedelta) -> None:
        since = self._clock.now() - after
        for edition in await self._database.read(lambda connection: find_unseen(connection, base_id, since)):
            with suppress(Overtaken, NotFound):
                await self._clear_left_behind(edition)

    async def _clear_left_behind(self, found: Edition) -> None:
        edition = await self._database.write(lambda connection: self._editions.take_over(connection, found))
        await self._run(self._clear(edition))

    async def _former(self, content: Content) -> _StoredDocument | None:
        """Return the document to replace; the document of an attached file replaces none."""
        if content.claim is not None:
            return None
        former = await self._find(content.document.knowledge_base_id, content.document.name)
        if (meant := content.instead_of) is not None:
            found = former.document if former is not None else None
            if found is None or (found.id, found.sha256) != (meant.id, meant.sha256):
                raise Conflict("The document has changed meanwhile.")
        return former

    async def _find(self, base_id: str, name: str) -> _StoredDocument | None:
        """Return a document, or None."""

        def work(connection: Connection) -> _StoredDocument | None:
            row = _find_row(connection, base_id, name)
            if row is None:
                return None
            document, edition_id = rows.to_document(row), row["edition_id"]
            is_indexed = row["indexed_edition_id"] == edition_id
            tokens = row["index_token_count"] if is_indexed else _count_tokens(connection, edition_id)
            return _StoredDocument(document, edition_id, numbers_of(connection, edition_id), tokens)

        return await self._database.read(work)


async def _chain(read: Sequence[Batch], rest: AsyncIterator[Batch]) -> AsyncIterator[Batch]:
    for chunks in read:
        yield chunks
    async for chunks in rest:
        yield chunks


def _find_row(connection: Connection, base_id: str, name: str) -> rows.Row | None:
    columns = (_document.c.edition_id, _document.c.indexed_edition_id, _document.c.index_token_count)
    is_it = (_document.c.knowledge_base_id == base_id) & (_document.c.name == name)
    return connection.execute(select(*rows.DOCUMENT_COLUMNS, *columns).where(is_it)).mappings().first()


def _count_tokens(connection: Connection, edition_id: str) -> int:
    """Count the index tokens of an edition that the release before wrote."""
    query = select(*rows.CHUNK_COLUMNS).where(_chunk.c.edition_id == edition_id)
    found = connection.execute(query).mappings().all()
    count = partial(sum, (len(tokenize(chunk_in(row, "").join_headings)) for row in found))
    return compute_off_event_loop(connection, count)


def _is_as_found(connection: Connection, base_id: str, name: str, former: _StoredDocument | None) -> bool:
    """Lock the base; return whether the document is still the one that was found."""
    hold_base(connection, base_id)
    query = select(_document.c.edition_id).where(_document.c.knowledge_base_id == base_id, _document.c.name == name)
    return connection.execute(query).scalar() == (former.edition_id if former is not None else None)


def _count_change(connection: Connection, base_id: str, grown_chunks: int, grown_tokens: int) -> None:
    connection.execute(
        update(_base)
        .where(_base.c.id == base_id)
        .values(
            version=_base.c.version + 1,
            indexed_version=_base.c.indexed_version + 1,
            chunk_count=_base.c.chunk_count + grown_chunks,
            index_token_count=_base.c.index_token_count + grown_tokens,
        )
    )
