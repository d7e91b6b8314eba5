"""Reading the audit of restricted searches."""

from typing import NamedTuple

from backend.domain.identity import Caller
from backend.domain.restricted import AuditRecord
from backend.ports.restricted import AuditTrail


class AuditPage(NamedTuple):
    """A page of records, and whether there are more behind it."""

    records: tuple[AuditRecord, ...]
    has_more: bool


class ReadAudit:
    """The audit for administrators; that the caller is one has been checked."""

    def __init__(self, trail: AuditTrail) -> None:
        self._trail = trail

    async def page(self, admin: Caller, *, after: str | None, limit: int, descending: bool) -> AuditPage:
        """Return records of the administrator's tenant, and those of forged tickets, which belong to no tenant.

        Raises:
            NotFound: `after` names none of them.
        """
        found = await self._trail.page(admin.tenant, after=after, limit=limit + 1, descending=descending)
        return AuditPage(found[:limit], has_more=len(found) > limit)
