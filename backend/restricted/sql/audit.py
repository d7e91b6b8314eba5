"""The audit in SQL. Nothing here changes a record; the preview of an answer whose ground is deleted is not shown."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic_core import to_json
from sqlalchemy import ColumnElement, Connection, RowMapping, func, select

from backend.foundation.sql.database import Database
from backend.knowledge.sql.tables import document
from backend.restricted.domain.receipts import EMPTY_CHAIN, ChainEnd, ReceiptQuery
from backend.restricted.domain.restricted import AuditPage, AuditQuery, AuditRecord
from backend.restricted.sql import tables
from backend.restricted.sql.receipts import find_end, find_receipts
from backend.restricted.sql.rows import to_record
from shared.errors import NotFound
from shared.receipts import SealedReceipt

_audit, _receipt, _of_document = tables.safe_summary_audit, tables.receipt, tables.receipt_document
_RESTS_ON_DELETED = (
    select(_of_document.c.document_id)
    .join(_receipt)
    .where(
        # the receipt of an answer has the instant of its record, by which receipts are found
        _receipt.c.recorded_at == _audit.c.recorded_at,
        _receipt.c.tenant == _audit.c.tenant,
        _receipt.c.turn_id == _audit.c.turn_id,
        ~select(document.c.id).where(document.c.id == _of_document.c.document_id).exists(),
    )
    .exists()
)


class SqlAuditTrail:
    """The `AuditTrail` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, tenant: str, query: AuditQuery, user_hash: str | None = None) -> AuditPage:
        """Return records of a tenant and of no tenant, ordered by time and id."""
        shown = select(_audit, _RESTS_ON_DELETED.label("is_withheld")).where(_audit.c.tenant.in_([tenant, ""]))

        def work(connection: Connection) -> AuditPage:
            page = shown.where(*_conditions(query, user_hash))
            if query.after is not None:
                row = connection.execute(shown.where(_audit.c.id == query.after)).first()
                if row is None:
                    raise NotFound("There is no such record.", param="after")
                page = page.where(_is_behind(row.recorded_at, row.id, descending=query.descending))
            order = [column.desc() if query.descending else column for column in (_audit.c.recorded_at, _audit.c.id)]
            found = connection.execute(page.order_by(*order).limit(query.limit + 1)).mappings()
            records = tuple(_show(row) for row in found)
            return AuditPage(records[: query.limit], has_more=len(records) > query.limit)

        return await self._database.read(work)

    async def receipts(self, tenant: str, query: ReceiptQuery) -> Sequence[SealedReceipt]:
        """Return receipts of a tenant by their numbers."""
        asked = (tenant, query.document_id, query.after, query.limit)
        return await self._database.read(lambda connection: find_receipts(connection, *asked))

    async def end_of_receipts(self, tenant: str) -> ChainEnd:
        """Return the end of a tenant's chain."""
        return await self._database.read(lambda connection: find_end(connection, tenant)) or EMPTY_CHAIN


def _show(row: RowMapping) -> AuditRecord:
    """Read a record; it tells nothing of what was said on the ground of a document that is deleted."""
    columns: dict[str, Any] = {**row}
    is_withheld = columns.pop("is_withheld")
    return to_record({**columns, "preview": ""} if is_withheld else columns)


def _conditions(query: AuditQuery, user_hash: str | None) -> list[ColumnElement[bool]]:
    """Return the conditions of a query; no index serves them, because the audit is read rarely and may take time."""
    conditions: list[ColumnElement[bool]] = []
    if user_hash is not None:
        conditions.append(_audit.c.user_hash == user_hash)
    if query.reason is not None:
        conditions.append(_audit.c.reason == query.reason.value)
    if query.knowledge_base_id is not None:
        conditions.append(_names_base(query.knowledge_base_id))
    return conditions


def _names_base(base_id: str) -> ColumnElement[bool]:
    """Look for an id as it stands in the JSON of `bases`, where the quotes in a value are escaped.

    By `replace`, because SQLite's LIKE ignores case, and no other substring function has one name in both databases.
    """
    entry = f'"id":{to_json(base_id).decode()}'
    return func.replace(_audit.c.bases, entry, "") != _audit.c.bases


def _is_behind(recorded_at: datetime, record_id: str, *, descending: bool) -> ColumnElement[bool]:
    at, id_ = _audit.c.recorded_at, _audit.c.id
    if descending:
        return (at < recorded_at) | ((at == recorded_at) & (id_ < record_id))
    return (at > recorded_at) | ((at == recorded_at) & (id_ > record_id))
