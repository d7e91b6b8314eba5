"""The audit in SQL. Nothing here changes a record."""

from datetime import datetime

from sqlalchemy import ColumnElement, Connection, select

from backend.adapters.sql.database import Database
from backend.adapters.sql.restricted import tables
from backend.adapters.sql.restricted.rows import to_record
from backend.domain.restricted import AuditRecord
from shared.errors import NotFound

_audit = tables.safe_summary_audit


class SqlAuditTrail:
    """The `AuditTrail` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, tenant: str, *, after: str | None, limit: int, descending: bool) -> tuple[AuditRecord, ...]:
        """Return records of a tenant and of no tenant by time and id, behind the record `after`."""
        shown = select(_audit).where(_audit.c.tenant.in_([tenant, ""]))

        def work(connection: Connection) -> tuple[AuditRecord, ...]:
            query = shown
            if after is not None:
                row = connection.execute(shown.where(_audit.c.id == after)).first()
                if row is None:
                    raise NotFound("There is no such record.", param="after")
                query = query.where(_is_behind(row.recorded_at, row.id, descending=descending))
            order = [column.desc() if descending else column for column in (_audit.c.recorded_at, _audit.c.id)]
            found = connection.execute(query.order_by(*order).limit(limit)).mappings()
            return tuple(to_record({**row}) for row in found)

        return await self._database.read(work)


def _is_behind(recorded_at: datetime, record_id: str, *, descending: bool) -> ColumnElement[bool]:
    at, id_ = _audit.c.recorded_at, _audit.c.id
    if descending:
        return (at < recorded_at) | ((at == recorded_at) & (id_ < record_id))
    return (at > recorded_at) | ((at == recorded_at) & (id_ > record_id))
