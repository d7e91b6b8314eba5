"""Reading the audit of restricted searches."""

from backend.identity.domain import Caller
from backend.restricted.domain.released_results import user_hash
from backend.restricted.domain.restricted import AuditPage, AuditQuery
from backend.restricted.ports.restricted import AuditTrail


class ReadAudit:
    """The audit for administrators; that the caller is one has been checked. `secret` is the key of user hashes."""

    def __init__(self, trail: AuditTrail, secret: str) -> None:
        self._trail = trail
        self._secret = secret

    async def page(self, admin: Caller, query: AuditQuery) -> AuditPage:
        """Return records of the administrator's tenant, and those of forged tickets, which belong to no tenant.

        Raises:
            NotFound: `after` names none of them.
        """
        user = user_hash(self._secret, admin.tenant, query.user_id) if query.user_id is not None else None
        return await self._trail.page(admin.tenant, query, user)
