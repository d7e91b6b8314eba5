"""Reading the audit of restricted searches."""

from typing import NamedTuple

from backend.identity.domain.identity import Caller
from backend.restricted.domain.audit_filter import AuditFilter
from backend.restricted.domain.released_results import user_hash
from backend.restricted.domain.restricted import AuditRecord
from backend.restricted.ports.restricted import AuditTrail
from shared.models.safe_summary import Reason


class AuditQuery(NamedTuple):
    """Which page of which records: up to `limit` of them, behind the record `after`; None asks for nothing."""

    limit: int
    descending: bool
    after: str | None = None
    user_id: str | None = None
    knowledge_base_id: str | None = None
    reason: Reason | None = None


class AuditPage(NamedTuple):
    """A page of records, and whether there are more behind it."""

    records: tuple[AuditRecord, ...]
    has_more: bool


class ReadAudit:
    """The audit for administrators; that the caller is one has been checked. `secret` keys the names of users."""

    def __init__(self, trail: AuditTrail, secret: str) -> None:
        self._trail = trail
        self._secret = secret

    async def page(self, admin: Caller, query: AuditQuery) -> AuditPage:
        """Return records of the administrator's tenant, and those of forged tickets, which belong to no tenant.

        Raises:
            NotFound: `after` names none of them.
        """
        wanted = AuditFilter(
            user_hash=user_hash(self._secret, admin.tenant, query.user_id) if query.user_id is not None else None,
            knowledge_base_id=query.knowledge_base_id,
            reason=query.reason,
        )
        found = await self._trail.page(
            admin.tenant, after=query.after, limit=query.limit + 1, descending=query.descending, wanted=wanted
        )
        return AuditPage(found[: query.limit], has_more=len(found) > query.limit)
