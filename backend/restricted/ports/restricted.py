"""The ledger of restricted searches: budgets, pauses, released results, and the audit."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from backend.restricted.domain.receipts import ChainEnd, ReceiptQuery
from backend.restricted.domain.restricted import (
    AuditPage,
    AuditQuery,
    AuditRecord,
    Candidate,
    ChargedSearch,
    Ruling,
    SealedSearch,
    Settlement,
)
from backend.restricted.domain.restricted_budget import RestrictedLimits
from backend.restricted.domain.told_facts import ChunkShown
from shared.models.safe_summary import ReleasedSummary
from shared.receipts import ReceiptSigner, SealedReceipt


class AnswerCuts(Protocol):
    """How often the outgoing scan has cut an answer of a user. Every method raises Unavailable."""

    async def count_cut(self, user_id: str, base_ids: Sequence[str], now: datetime) -> None:
        """Count an answer that the outgoing scan has cut as a refusal in each base that still exists.

        A cut tells the user that something stands in a base, so it counts as much as a refused search.
        """
        ...


class RestrictedLedger(AnswerCuts, Protocol):
    """The usage of restricted members, and the results released to them. Every method raises Unavailable."""

    async def charge(
        self, search: SealedSearch, candidates: Sequence[Candidate], limits: RestrictedLimits
    ) -> ChargedSearch:
        """Charge a search to each of its bases and store it, or refuse it whole and store nothing.

        Budgets are exact under concurrent calls. The candidates that are admitted count as sent. Where an equal search
        of the same turn is charged and has no ruling, that one is returned and nothing is charged: the process that ran
        the turn died between the charge and the outcome, and another one runs the turn again.

        Raises:
            PermissionDenied: a base was deleted meanwhile.
        """
        ...

    async def find_search(self, search_id: str) -> ChargedSearch | None:
        """Return a search that was charged within the last 30 days, or None."""
        ...

    async def is_paused(self, user_id: str, base_ids: Sequence[str], now: datetime) -> bool:
        """Return whether too many refusals have paused the user in one of the bases."""
        ...

    async def find_released(self, cache_key: str) -> ReleasedSummary | None:
        """Return the result released for an equal search, or None."""
        ...

    async def read_shown(self, search_id: str) -> tuple[ChunkShown, ...]:
        """Return the chunks that a search has shown, as far as their documents still have them."""
        ...

    async def settle(self, settlement: Settlement, signer: ReceiptSigner) -> Ruling | None:
        """Write an outcome in one transaction: audit record, ruling, released result, receipt, and a refusal's count.

        Return None when it is written. When the search has a ruling already, return that and write nothing. Where its
        facts are more than the user may be told of a document, it is written without its release, and the ruling of
        that returned; the facts of parallel answers are counted one after the other.
        """
        ...

    async def find_unreported(self, before: datetime, limit: int) -> tuple[str, ...]:
        """Return the ids of the oldest searches until that instant of which no outcome was settled."""
        ...

    async def count_unassigned(self, since: datetime) -> int:
        """Count the audit records since then that belong to no tenant, as those of forged tickets."""
        ...

    async def count_canary_replies(self, model: str, since: datetime) -> int:
        """Count the recorded searches since then in which a reply of this model held canaries, whoever searched."""
        ...

    async def remove_old(self, before: datetime) -> None:
        """Delete settled searches and released results from before that instant; audit records stay."""
        ...


class AuditTrail(Protocol):
    """Reading the audit and the receipts."""

    async def page(self, tenant: str, query: AuditQuery, user_hash: str | None = None) -> AuditPage:
        """Return records of a tenant and of no tenant, ordered by time and id.

        The preview of an answer that rests on a document which is deleted is empty.

        `user_hash` is the name of the query's user in the audit. The record `query.after`, behind which the page
        begins, need not meet the query's conditions.

        Raises:
            NotFound: `query.after` names no record of the tenant or of no tenant.
        """
        ...

    async def receipts(self, tenant: str, query: ReceiptQuery) -> Sequence[SealedReceipt]:
        """Return receipts of a tenant by their numbers."""
        ...

    async def end_of_receipts(self, tenant: str) -> ChainEnd:
        """Return the end of a tenant's chain."""
        ...


class SafeSummaryObserver(Protocol):
    """Notified of the outcomes of restricted searches; a method must not raise and must not block."""

    def note_decision(self, record: AuditRecord) -> None:
        """Note that a search was answered or refused."""
        ...

    def not_closable(self, search_id: str, error: BaseException) -> None:
        """Note that an unreported search could not be put on record: a defect, to be logged with its traceback."""
        ...
