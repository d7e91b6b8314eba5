"""The audit of restricted searches: writing records, and reading them."""

from collections.abc import Sequence
from datetime import timedelta

from backend.identity.domain import Caller
from backend.restricted.domain.receipts import ReceiptQuery, write_end
from backend.restricted.domain.released_results import user_hash
from backend.restricted.domain.restricted import (
    AuditedBase,
    AuditPage,
    AuditQuery,
    AuditRecord,
    ChargedSearch,
    Ruling,
    SealedSearch,
    SearchAdmission,
    Settlement,
    preview_of,
)
from backend.restricted.ports.restricted import AuditTrail, RestrictedLedger, SafeSummaryObserver
from shared.clock import Clock
from shared.ids import IdPrefix, new_id
from shared.models.safe_summary import Decision, Failure, ReleasedSummary
from shared.receipts import ReceiptSigner, SealedReceipt

BAD_TICKETS_KEPT = 60
BAD_TICKETS_KEPT_WITHIN = timedelta(hours=1)
"""The most records of forged tickets in an hour: more add no information, and the observer counts them all."""


class RestrictedAudit:
    """Writes records to the ledger and notifies the observer.

    `secret` is the key of user hashes, and that from which the key of receipts is derived.
    """

    def __init__(self, ledger: RestrictedLedger, observer: SafeSummaryObserver, clock: Clock, secret: str) -> None:
        self._signer = ReceiptSigner(secret)
        self._ledger = ledger
        self._observer = observer
        self._clock = clock
        self._secret = secret

    async def refuse(self, search: SealedSearch, reason: Failure, admission: SearchAdmission | None = None) -> None:
        """Record a search that was refused before anything was sent."""
        record = self.record_of(search, admission).model_copy(update={"decision": Decision.REFUSE, "reason": reason})
        await self.settle(_settle_unreported(record, search))

    async def abandon(self, charged: ChargedSearch) -> None:
        """Refuse a search that has no reported outcome; its chunks may have been sent to the secondary model."""
        begun = self.record_of(charged.search, charged.admission)
        record = begun.model_copy(update={"chunks_sent": len(charged.admission.chunk_ids)})
        await self.settle(_settle_unreported(record, charged.search))

    def not_closable(self, search_id: str, error: BaseException) -> None:
        """Notify the observer of a search that cannot be put on record, for instance because its row is malformed."""
        self._observer.not_closable(search_id, error)

    async def release_again(self, search: SealedSearch, released: ReleasedSummary) -> None:
        """Record that an earlier result was returned again."""
        again = {"reason": released.reason, "is_cached": True, "preview": preview_of(released)}
        record = self.record_of(search, None).model_copy(update={"decision": Decision.ANSWER, **again})
        settlement = _settle_unreported(record, search)
        await self.settle(settlement.model_copy(update={"cache_key": search.cache_key, "shown": released}))

    async def settle(self, settlement: Settlement) -> Ruling | None:
        """Write an outcome in one transaction; return the ruling that is in force where it is another one."""
        other = await self._ledger.settle(settlement, self._signer)
        if other is None:
            self._observer.note_decision(settlement.record)
        elif other.reason is Failure.BUDGET_FACTS:
            self._observer.note_decision(settlement.refuse(other.reason).record)
        return other

    def record_of(self, search: SealedSearch, admission: SearchAdmission | None) -> AuditRecord:
        """Return a first record of a search: a refusal, until a decision replaces it."""
        return AuditRecord(
            id=new_id(IdPrefix.AUDIT_RECORD),
            recorded_at=self._clock.now(),
            tenant=search.tenant,
            user_hash=user_hash(self._secret, search.tenant, search.user_id),
            conversation_id=search.conversation_id,
            turn_id=search.turn_id,
            search_id=search.id or None,
            bases=tuple(AuditedBase(id=base.id, version=base.version) for base in search.bases),
            versions=search.versions,
            decision=Decision.REFUSE,
            reason=Failure.AUDIT_UNAVAILABLE,
            chunks_found=admission.chunks_found if admission else 0,
            chunks_distinct=admission.chunks_new if admission else 0,
            budget_before=admission.budget_before if admission else None,
            budget_after=admission.budget_after if admission else None,
            via=search.via,
        )

    async def record_bad_ticket(self) -> None:
        """Record that somebody has shown a ticket that is forged, malformed or expired."""
        now = self._clock.now()
        record = AuditRecord(
            id=new_id(IdPrefix.AUDIT_RECORD),
            recorded_at=now,
            tenant="",
            user_hash="",
            conversation_id="",
            turn_id="",
            search_id=None,
            bases=(),
            versions=None,
            decision=Decision.REFUSE,
            reason=Failure.BAD_TICKET,
        )
        if await self._ledger.count_unassigned(now - BAD_TICKETS_KEPT_WITHIN) < BAD_TICKETS_KEPT:
            await self._ledger.settle(_settle_unreported(record, None), self._signer)
        self._observer.note_decision(record)


def _settle_unreported(record: AuditRecord, search: SealedSearch | None) -> Settlement:
    """Return a settlement without a reported outcome; its ruling makes every later report a conflict."""
    ruling = Ruling(digest="", is_released=False, reason=record.reason)
    user_id = search.user_id if search else ""
    return Settlement(record=record, ruling=ruling, user_id=user_id, cache_key=None, released=None)


class ReadAudit:
    """The audit for administrators; the caller's role has been checked before.

    `secret` is the key of user hashes, and that from which the key of receipts is derived.
    """

    def __init__(self, trail: AuditTrail, secret: str) -> None:
        self._signer = ReceiptSigner(secret)
        self._trail = trail
        self._secret = secret

    async def page(self, admin: Caller, query: AuditQuery) -> AuditPage:
        """Return records of the administrator's tenant, and those of forged tickets, which belong to no tenant.

        Raises:
            NotFound: `after` names none of them.
        """
        user = user_hash(self._secret, admin.tenant, query.user_id) if query.user_id is not None else None
        return await self._trail.page(admin.tenant, query, user)

    async def receipts(self, admin: Caller, query: ReceiptQuery) -> Sequence[SealedReceipt]:
        """Return receipts of the administrator's tenant in order, one more than asked for where there are more."""
        return await self._trail.receipts(admin.tenant, query._replace(limit=query.limit + 1))

    async def end_of_receipts(self, admin: Caller) -> tuple[SealedReceipt, str]:
        """Return the line that ends an export of the receipts of the tenant, and the public key of all of them."""
        end = await self._trail.end_of_receipts(admin.tenant)
        return write_end(admin.tenant, end, self._signer), self._signer.public_key
