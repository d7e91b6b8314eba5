"""The audit in SQL. Nothing here changes a record."""

from datetime import datetime

from pydantic_core import to_json
from sqlalchemy import ColumnElement, Connection, func, select

from backend.foundation.sql.database import Database
from backend.restricted.domain.audit_filter import EVERY_RECORD, AuditFilter
from backend.restricted.domain.restricted import AuditRecord
from backend.restricted.sql import tables
from backend.restricted.sql.rows import to_record
from shared.errors import NotFound

_audit = tables.safe_summary_audit


class SqlAuditTrail:
    """The `AuditTrail` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, tenant: str, *, after: str | None, limit: int, descending: bool, wanted: AuditFilter = EVERY_RECORD
    ) -> tuple[AuditRecord, ...]:
        """Return wanted records of a tenant and of no tenant by time and id, behind the record `after`."""
        shown = select(_audit).where(_audit.c.tenant.in_([tenant, ""]))

        def work(connection: Connection) -> tuple[AuditRecord, ...]:
            query = shown.where(*_conditions(wanted))
            if after is not None:
                row = connection.execute(shown.where(_audit.c.id == after)).first()
                if row is None:
                    raise NotFound("There is no such record.", param="after")
                query = query.where(_is_behind(row.recorded_at, row.id, descending=descending))
            order = [column.desc() if descending else column for column in (_audit.c.recorded_at, _audit.c.id)]
            found = connection.execute(query.order_by(*order).limit(limit)).mappings()
            return tuple(to_record({**row}) for row in found)

        return await self._database.read(work)


def _conditions(wanted: AuditFilter) -> list[ColumnElement[bool]]:
    """Say what rows must have; within a tenant they are read one by one, for who looks into the audit can wait."""
    conditions: list[ColumnElement[bool]] = []
    if wanted.user_hash is not None:
        conditions.append(_audit.c.user_hash == wanted.user_hash)
    if wanted.reason is not None:
        conditions.append(_audit.c.reason == wanted.reason.value)
    if wanted.knowledge_base_id is not None:
        conditions.append(_names_base(wanted.knowledge_base_id))
    return conditions


def _names_base(base_id: str) -> ColumnElement[bool]:
    """Look for an id as it stands in the JSON of `bases`, where the quotes in a value are escaped.

    By `replace`, because SQLite's LIKE does not tell a from A, and no other search is spelled alike on both databases.
    """
    entry = f'"id":{to_json(base_id).decode()}'
    return func.replace(_audit.c.bases, entry, "") != _audit.c.bases


def _is_behind(recorded_at: datetime, record_id: str, *, descending: bool) -> ColumnElement[bool]:
    at, id_ = _audit.c.recorded_at, _audit.c.id
    if descending:
        return (at < recorded_at) | ((at == recorded_at) & (id_ < record_id))
    return (at > recorded_at) | ((at == recorded_at) & (id_ > record_id))
