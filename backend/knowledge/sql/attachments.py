"""Attached files in SQL: those in the queue, and the documents of a base, as one list."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Subquery,
    delete,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    union_all,
    update,
)

from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.sql.database import Database
from backend.foundation.sql.idempotency import take_key
from backend.foundation.sql.paging import follows_row, rows_in_order
from backend.foundation.sql.parameters import to_json
from backend.foundation.sql.short_transactions import SLICE_SECONDS, DivisibleWork, run_in_short_transactions
from backend.knowledge.domain.attachments import (
    AttachedFile,
    AttachedQuery,
    AttachedStatus,
    Attachment,
    AttachmentClaim,
    FileBatch,
    FileCounts,
    FileError,
    TakenAttachment,
)
from backend.knowledge.sql import attachment_queue, tables
from backend.knowledge.sql.editions import hold_base
from backend.search.domain.chunks import attributes_in
from backend.search.domain.filters import Attributes
from shared.clock import Clock
from shared.errors import NotFound

_attachment, _document, _base = tables.attachment, tables.document, tables.knowledge_base
_batch, _member = tables.file_batch, tables.file_batch_member
_FILES_PER_STEP = 100
_WAITING = AttachedStatus.IN_PROGRESS.value


class SqlAttachmentStore:
    """The `AttachmentStore` over a `Database`."""

    def __init__(self, database: Database, clock: Clock, slice_seconds: float = SLICE_SECONDS) -> None:
        self._database = database
        self._clock = clock
        self._slice_seconds = slice_seconds

    async def attach(
        self, attachments: Sequence[Attachment], batch: FileBatch | None = None, claim: KeyClaim | None = None
    ) -> None:
        """Queue files, some in each transaction; a process killed meanwhile has acknowledged none of them."""
        await run_in_short_transactions(self._database, _attach(attachments, batch, claim), self._slice_seconds)

    async def list_attached(self, query: AttachedQuery) -> tuple[AttachedFile, ...]:
        """Return a page and one file more."""
        return await self._database.read(lambda connection: _page(connection, query))

    async def find_attached(self, base_id: str, file_id: str) -> AttachedFile | None:
        """Return one file, or None."""
        files = _files_of(base_id)
        query = select(files).where(files.c.id == file_id)
        row = await self._database.read(lambda connection: connection.execute(query).mappings().first())
        return _to_attached(base_id, row) if row is not None else None

    async def set_attributes(self, base_id: str, file_id: str, attributes: Attributes) -> bool:
        """Replace the attributes, in the queue or of the document."""
        new = {"attributes": to_json(attributes)}
        queued = update(_attachment).where(_is_queued(base_id, file_id)).values(new)
        stored = update(_document).where(_is_document(base_id, file_id)).values(new)

        def work(connection: Connection) -> bool:
            hold_base(connection, base_id)
            return bool(connection.execute(queued).rowcount + connection.execute(stored).rowcount)

        return await self._database.write(work)

    async def drop_attachment(self, base_id: str, file_id: str) -> None:
        """Take a file from the queue."""
        statement = delete(_attachment).where(_is_queued(base_id, file_id))
        await self._database.write(lambda connection: connection.execute(statement))

    async def find_batch(self, base_id: str, batch_id: str) -> tuple[FileBatch, FileCounts] | None:
        """Return a batch and the counts of its files."""
        query = select(_batch).where(_batch.c.id == batch_id, _batch.c.knowledge_base_id == base_id)

        def work(connection: Connection) -> tuple[FileBatch, FileCounts] | None:
            row = connection.execute(query).mappings().first()
            if row is None:
                return None
            return FileBatch.model_validate(dict(row)), _counts(connection, [base_id], batch_id).get(
                base_id, FileCounts()
            )

        return await self._database.read(work)

    async def cancel_batch(self, base_id: str, batch_id: str) -> bool:
        """Cancel what waits of a batch."""
        its_files = select(_member.c.file_id).where(_member.c.batch_id == batch_id)
        is_its = (_attachment.c.knowledge_base_id == base_id) & _attachment.c.file_id.in_(its_files)
        files = update(_attachment).where(is_its, _attachment.c.status == _WAITING)
        batch = update(_batch).where(_batch.c.id == batch_id, _batch.c.knowledge_base_id == base_id)

        def work(connection: Connection) -> bool:
            if not connection.execute(batch.values(is_cancelled=True)).rowcount:
                return False
            connection.execute(files.values(status=AttachedStatus.CANCELLED.value, leased_until=None))
            return True

        return await self._database.write(work)

    async def file_counts(self, base_ids: Sequence[str]) -> Mapping[str, FileCounts]:
        """Count the files of bases."""
        return await self._database.read(lambda connection: _counts(connection, base_ids)) if base_ids else {}

    async def note_active(self, base_ids: Sequence[str]) -> None:
        """Note that bases are used now; what another replica has noted later stays."""
        now, noted = self._clock.now(), _base.c.last_active_at
        are_these = _base.c.id.in_(base_ids) & or_(noted.is_(None), noted < now)
        statement = update(_base).where(are_these).values(last_active_at=now)
        await self._database.write(lambda connection: connection.execute(statement))

    async def take(self, last_served: tuple[str, str] | None, lease_seconds: float) -> TakenAttachment | None:
        """Lease the file that is to be read next; looking whether any waits takes no lock."""
        if not await self._database.read(attachment_queue.any_waits):
            return None
        return await self._database.write(
            partial(attachment_queue.lease_next, last_served=last_served, lease_seconds=lease_seconds)
        )

    async def renew(self, claim: AttachmentClaim, lease_seconds: float) -> bool:
        """Extend a lease."""
        return await self._database.write(
            partial(attachment_queue.extend_lease, claim=claim, lease_seconds=lease_seconds)
        )

    async def release(self, claim: AttachmentClaim, after_seconds: float) -> None:
        """Give a lease back."""
        await self._database.write(partial(attachment_queue.give_back, claim=claim, after_seconds=after_seconds))

    async def release_all(self) -> None:
        """Give all leases back."""
        statement = update(_attachment).where(_attachment.c.status == _WAITING).values(leased_until=None)
        await self._database.write(lambda connection: connection.execute(statement))

    async def fail(self, claim: AttachmentClaim, error: FileError) -> None:
        """Note why a file became no document."""
        await self._database.write(partial(attachment_queue.fail, claim=claim, error=error))


def _attach(attachments: Sequence[Attachment], batch: FileBatch | None, claim: KeyClaim | None) -> DivisibleWork[None]:
    for start in range(0, len(attachments), _FILES_PER_STEP):
        connection = yield
        some = attachments[start : start + _FILES_PER_STEP]
        hold_base(connection, some[0].knowledge_base_id)
        _queue(connection, some)
    # The batch and the key come last and together: a request that breaks off has neither, and may be sent again.
    connection = yield
    take_key(connection, claim)
    if batch is not None:
        hold_base(connection, batch.knowledge_base_id)
        connection.execute(insert(_batch), batch.model_dump())
        connection.execute(insert(_member), [{"batch_id": batch.id, "file_id": one.file_id} for one in attachments])


def _queue(connection: Connection, attachments: Sequence[Attachment]) -> None:
    """Queue files of one base; those that are there already get their attributes, and wait again where they failed."""
    base_id, ids = attachments[0].knowledge_base_id, [one.file_id for one in attachments]
    queued = dict(
        connection.execute(
            select(_attachment.c.file_id, _attachment.c.status).where(
                _attachment.c.knowledge_base_id == base_id, _attachment.c.file_id.in_(ids)
            )
        ).all()
    )
    are_stored = (_document.c.knowledge_base_id == base_id) & _document.c.file_id.in_(ids)
    stored = set(connection.execute(select(_document.c.file_id).where(are_stored)).scalars())
    new: list[Attachment] = []
    for one in attachments:
        attributes = {"attributes": to_json(one.attributes)}
        if one.file_id in stored:
            is_it = _is_document(base_id, one.file_id)
            connection.execute(update(_document).where(is_it).values(attributes))
        elif one.file_id in queued:
            again = (
                {} if queued[one.file_id] == _WAITING else {**attachment_queue.WAITING, "created_at": one.created_at}
            )
            is_it = _is_queued(base_id, one.file_id)
            connection.execute(update(_attachment).where(is_it).values({**attributes, **again}))
        else:
            new.append(one)
    attachment_queue.queue_new(connection, new)


def _files_of(base_id: str, batch_id: str | None = None) -> Subquery:
    """Select the files of a base, of a batch only where one is named: its documents, and what is in the queue."""
    source = func.coalesce(_document.c.file_id, _document.c.id)
    stored = select(
        source.label("id"),
        _document.c.created_at,
        literal(AttachedStatus.COMPLETED.value).label("status"),
        _document.c.size_bytes,
        _document.c.attributes,
        null().label("error_code"),
        null().label("error_message"),
        _document.c.name.label("document_name"),
    ).where(_document.c.knowledge_base_id == base_id)
    queued = select(
        _attachment.c.file_id,
        _attachment.c.created_at,
        _attachment.c.status,
        literal(0),
        _attachment.c.attributes,
        _attachment.c.error_code,
        _attachment.c.error_message,
        null(),
    ).where(_attachment.c.knowledge_base_id == base_id)
    if batch_id is not None:
        its_files = select(_member.c.file_id).where(_member.c.batch_id == batch_id)
        stored = stored.where(_document.c.file_id.in_(its_files))
        queued = queued.where(_attachment.c.file_id.in_(its_files))
    return union_all(stored, queued).subquery("attached")


def _page(connection: Connection, query: AttachedQuery) -> tuple[AttachedFile, ...]:
    files = _files_of(query.base_id, query.batch_id)
    found: Select[Any] = select(files)
    if query.status is not None:
        found = found.where(files.c.status == query.status.value)
    is_backward = query.before is not None
    cursor, name = (query.before, "before") if is_backward else (query.after, "after")
    descending = query.descending != is_backward
    if cursor is not None:
        found = found.where(_is_behind(connection, files, cursor, name, descending=descending))
    order = rows_in_order((files.c.created_at, files.c.id), descending=descending)
    page = connection.execute(found.order_by(*order).limit(query.limit + 1)).mappings().all()
    return tuple(_to_attached(query.base_id, row) for row in page)


def _is_behind(
    connection: Connection, files: Subquery, cursor: str, name: str, *, descending: bool
) -> ColumnElement[bool]:
    row = connection.execute(select(files.c.created_at, files.c.id).where(files.c.id == cursor)).first()
    if row is None:
        raise NotFound("There is no such file in the vector store.", param=name)
    return follows_row((files.c.created_at, files.c.id), row[0], row[1], descending=descending)


def _counts(connection: Connection, base_ids: Sequence[str], batch_id: str | None = None) -> dict[str, FileCounts]:
    """Count the files of each base by their status, with the bytes and the age of the newest."""
    stored = select(
        _document.c.knowledge_base_id,
        literal(AttachedStatus.COMPLETED.value).label("status"),
        func.count().label("files"),
        func.coalesce(func.sum(_document.c.size_bytes), 0).label("size_bytes"),
        func.max(_document.c.created_at).label("newest"),
    ).where(_document.c.knowledge_base_id.in_(base_ids))
    queued = select(
        _attachment.c.knowledge_base_id,
        _attachment.c.status,
        func.count(),
        literal(0),
        func.max(_attachment.c.created_at),
    ).where(_attachment.c.knowledge_base_id.in_(base_ids))
    if batch_id is not None:
        its_files = select(_member.c.file_id).where(_member.c.batch_id == batch_id)
        stored = stored.where(_document.c.file_id.in_(its_files))
        queued = queued.where(_attachment.c.file_id.in_(its_files))
    counted = union_all(
        stored.group_by(_document.c.knowledge_base_id),
        queued.group_by(_attachment.c.knowledge_base_id, _attachment.c.status),
    )
    counts: dict[str, FileCounts] = {}
    for base_id, status, files, size_bytes, newest in connection.execute(counted):
        so_far = counts.get(base_id, FileCounts())
        active_at = max((one for one in (so_far.active_at, newest) if one is not None), default=None)
        grown = {status: files, "size_bytes": so_far.size_bytes + int(size_bytes), "active_at": active_at}
        counts[base_id] = so_far._replace(**grown)
    return counts


def _is_queued(base_id: str, file_id: str) -> ColumnElement[bool]:
    return (_attachment.c.knowledge_base_id == base_id) & (_attachment.c.file_id == file_id)


def _is_document(base_id: str, file_id: str) -> ColumnElement[bool]:
    is_named = (_document.c.file_id == file_id) | (_document.c.file_id.is_(None) & (_document.c.id == file_id))
    return (_document.c.knowledge_base_id == base_id) & is_named


def _to_attached(base_id: str, row: Mapping[Any, Any]) -> AttachedFile:
    has_error = row["error_code"] is not None
    error = {"code": row["error_code"], "message": row["error_message"]} if has_error else None
    names = ("id", "status", "created_at", "size_bytes", "document_name")
    return AttachedFile.model_validate(
        {
            **{name: row[name] for name in names},
            "knowledge_base_id": base_id,
            "attributes": attributes_in(row["attributes"]),
            "error": error,
        }
    )
