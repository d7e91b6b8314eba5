"""The ledger of restricted searches: budgets, pauses, kept results, and the audit."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from backend.restricted.domain.audit_filter import EVERY_RECORD, AuditFilter
from backend.restricted.domain.restricted import (
    AuditRecord,
    Candidate,
    ChargedSearch,
    Ruling,
    SealedSearch,
    SearchAdmission,
    Settlement,
)
from backend.restricted.domain.restricted_budget import RestrictedLimits
from shared.models.safe_summary import ReleasedSummary


class RestrictedLedger(Protocol):
    """What restricted members have used, and what was released to them. Every method raises Unavailable."""

    async def charge(
        self, search: SealedSearch, candidates: Sequence[Candidate], limits: RestrictedLimits
    ) -> SearchAdmission:
        """Charge a search to each of its bases and keep it, or refuse it whole and keep nothing.

        Exact however many ask at once. What it found counts as sent, as far as it is admitted.

        Raises:
            PermissionDenied: a base was deleted meanwhile.
        """
        ...

    async def find_search(self, search_id: str) -> ChargedSearch | None:
        """Return a search that was charged within the last 30 days, or None."""
        ...

    async def is_paused(self, user_id: str, base_ids: Sequence[str], now: datetime) -> bool:
        """Say whether the user is paused in one of the bases."""
        ...

    async def find_released(self, cache_key: str) -> ReleasedSummary | None:
        """Return what was released for an equal search, or None."""
        ...

    async def settle(self, settlement: Settlement) -> Ruling | None:
        """Write an outcome whole: audit record, ruling, kept result, and the refusal where it counts.

        Return None when it is written. When the search has a ruling already, that is returned and nothing written.
        """
        ...

    async def unreported(self, before: datetime, limit: int) -> tuple[str, ...]:
        """Return the ids of the oldest searches until that instant of which no outcome was settled."""
        ...

    async def count_unassigned(self, since: datetime) -> int:
        """Count the audit records since then that belong to no tenant, as those of forged tickets."""
        ...

    async def count_canary_replies(self, model: str, since: datetime) -> int:
        """Count the recorded searches since then in which a reply of this model held canaries, whoever searched."""
        ...

    async def count_cut(self, user_id: str, base_ids: Sequence[str], now: datetime) -> None:
        """Count an answer that the outgoing scan has cut as a refusal in each base; one that is gone is left out."""
        ...

    async def newest_served(self, user_id: str, base_ids: Sequence[str]) -> datetime | None:
        """Return the instant of the newest search of a user by which chunks of these bases were sent, or None.

        Whatever was sent before this was asked was searched for at that instant or earlier, whichever replica's
        clock told it.
        """
        ...

    async def served_texts(self, user_id: str, base_ids: Sequence[str], until: datetime) -> tuple[str, ...]:
        """Return the chunks of these bases that searches of a user, to that instant, sent to secondary models.

        Each once, from the last 30 days.
        Each with its document's name and its headings, as they read today: by base, name and place. What was
        replaced or deleted since is not there.
        """
        ...

    async def remove_old(self, before: datetime) -> None:
        """Forget settled searches and kept results from before that instant; audit records stay."""
        ...


class AuditTrail(Protocol):
    """Reading the audit."""

    async def page(
        self, tenant: str, *, after: str | None, limit: int, descending: bool, wanted: AuditFilter = EVERY_RECORD
    ) -> tuple[AuditRecord, ...]:
        """Return up to `limit` wanted records of a tenant and of no tenant by time and id, behind the record `after`.

        `after` may be a record that is not wanted: it tells where to go on.

        Raises:
            NotFound: `after` names no record of the tenant or of no tenant.
        """
        ...
