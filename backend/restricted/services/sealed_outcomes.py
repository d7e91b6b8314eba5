"""Outcomes that the sealed room reports: a summary is released only after its outcome is on record here."""

from typing import NamedTuple

from backend.knowledge.domain.tickets import Ticket
from backend.restricted.domain.released_results import outcome_digest
from backend.restricted.domain.restricted import (
    AuditRecord,
    ChargedSearch,
    Ruling,
    SealedSearch,
    Settlement,
    change_since,
    preview_of,
)
from backend.restricted.ports.restricted import RestrictedLedger
from backend.restricted.services.restricted_audit import RestrictedAudit
from backend.restricted.services.ticketed_knowledge import TicketAccess, find_wanted_bases, list_searched_bases
from backend.restricted.services.weigh_answers import AnswerWeighing, find_charged
from shared.clock import Clock
from shared.errors import Conflict, InvalidRequest
from shared.models.knowledge_api import ToldFact
from shared.models.safe_summary import (
    AnswerReason,
    Decision,
    Failure,
    GateCode,
    PolicyRefusal,
    Reason,
    ReleasedSummary,
    SummaryVersions,
)
from shared.models.values import Value


class Outcome(Value):
    """A reported outcome; `search_id` is None for a request that was refused before any search.

    `is_open_ask`: such a request guessed at nothing, so that its refusal does not count towards a pause.
    `released` is the result of an answer, and None for a refusal; `facts` are those that it tells, and None where
    nothing was weighed.
    """

    search_id: str | None
    base_ids: tuple[str, ...]
    versions: SummaryVersions
    decision: Decision
    reason: Reason
    gate_codes: tuple[GateCode, ...]
    rewrites: int
    latency_ms: int
    chunks_sent: int
    canary_hits: int
    is_open_ask: bool = False
    released: ReleasedSummary | None
    facts: tuple[ToldFact, ...] | None = None


class Verdict(NamedTuple):
    """Whether the sealed room may release, and the reason that is on record."""

    release: bool
    reason: Reason


class SealedOutcomes:
    """Records outcomes, after memberships and base versions have been checked again.

    `secret` is the key of the digests by which an outcome is known again.
    """

    def __init__(
        self,
        access: TicketAccess,
        ledger: RestrictedLedger,
        audit: RestrictedAudit,
        weighing: AnswerWeighing,
        clock: Clock,
        secret: str,
    ) -> None:
        self._weighing = weighing
        self._access = access
        self._ledger = ledger
        self._audit = audit
        self._clock = clock
        self._secret = secret

    async def report(self, ticket_text: str, outcome: Outcome) -> Verdict:
        """Record an outcome and return whether it may be released. The same outcome again changes nothing.

        Raises:
            Unauthenticated: the ticket is forged or expired; that is audited.
            PermissionDenied: a base is not in it.
            InvalidRequest: the outcome does not fit its search.
            NotFound: this turn has no such search.
            Conflict: another outcome of this search is on record.
        """
        ticket = await self._access.verify(ticket_text)
        wanted = find_wanted_bases(ticket, outcome.base_ids)
        _check(outcome)
        bindings = await self._access.memberships(ticket, wanted)
        if outcome.released is not None and not outcome.released.findings and await self._access.is_strict(bindings):
            raise InvalidRequest("From a strict knowledge base findings alone are released.", param="released")
        if self._weighing.must_weigh(outcome.released) and outcome.facts is None:
            raise InvalidRequest("Prose is released once it was weighed.", param="facts")
        today = list_searched_bases(bindings)
        charged = await self._find_charged(ticket, outcome, wanted)
        if charged is None:
            search = self._access.search_of(ticket, today, outcome.versions)
            change = Failure.ACCESS_CHANGED if len(today) < len(wanted) else None
        else:
            search, change = charged.search, change_since(charged.search, today)
        if change is None and outcome.released is not None and await self._is_paused(search):
            change = Failure.PAUSED
        return await self._settle(search, charged, outcome, change)

    async def _is_paused(self, search: SealedSearch) -> bool:
        """Return whether the user was paused while this search ran, so that parallel searches do not evade a pause."""
        return await self._ledger.is_paused(search.user_id, search.base_ids, self._clock.now())

    async def _settle(
        self, search: SealedSearch, charged: ChargedSearch | None, outcome: Outcome, change: Failure | None
    ) -> Verdict:
        is_released = outcome.released is not None and change is None
        ruling = Ruling(
            digest=outcome_digest(self._secret, search, outcome.model_dump_json().encode()),
            is_released=is_released,
            reason=change or outcome.reason,
        )
        settlement = Settlement(
            record=self._record(search, charged, outcome, ruling),
            ruling=ruling,
            user_id=search.user_id,
            cache_key=search.cache_key,
            is_open_ask=outcome.is_open_ask,
            released=outcome.released if is_released else None,
            shown=outcome.released if is_released else None,
            facts=(outcome.facts or ()) if is_released else (),
            most_facts=self._weighing.most_facts,
        )
        earlier = await self._audit.settle(settlement)
        if earlier is None:
            return Verdict(ruling.is_released, ruling.reason)
        if earlier.digest != ruling.digest:
            raise Conflict("Another outcome of this search is on record.", param="search_id")
        return Verdict(earlier.is_released and is_released, change or earlier.reason)

    def _record(
        self, search: SealedSearch, charged: ChargedSearch | None, outcome: Outcome, ruling: Ruling
    ) -> AuditRecord:
        begun = self._audit.record_of(search, charged.admission if charged else None)
        released = outcome.released if ruling.is_released else None
        return begun.model_copy(
            update={
                "versions": self._weighing.add_version(outcome.versions),
                "decision": Decision.ANSWER if ruling.is_released else Decision.REFUSE,
                "reason": ruling.reason,
                "gate_codes": outcome.gate_codes,
                "rewrites": outcome.rewrites,
                "latency_ms": outcome.latency_ms,
                "chunks_sent": outcome.chunks_sent,
                "canary_hits": outcome.canary_hits,
                "preview": preview_of(released) if released is not None else "",
                "facts": len(outcome.facts) if released is not None and outcome.facts is not None else None,
            }
        )

    async def _find_charged(self, ticket: Ticket, outcome: Outcome, wanted: frozenset[str]) -> ChargedSearch | None:
        """Return the search that was charged for this turn; None where the sealed room refused before it."""
        if outcome.search_id is None:
            return None
        charged = await find_charged(self._ledger, ticket, outcome.search_id)
        if frozenset(charged.search.base_ids) != wanted or charged.search.versions != outcome.versions:
            raise InvalidRequest("The outcome is of other bases or versions than its search.", param="search_id")
        return charged


def _check(outcome: Outcome) -> None:
    released = outcome.released
    is_answer = outcome.decision is Decision.ANSWER
    if is_answer != (released is not None):
        raise InvalidRequest("An answer has what is released, and a refusal has not.", param="released")
    if is_answer and outcome.search_id is None:
        raise InvalidRequest("Nothing is released without a search.", param="search_id")
    if isinstance(outcome.reason, AnswerReason) != is_answer or (released and released.reason is not outcome.reason):
        raise InvalidRequest("The reason does not fit the decision.", param="reason")
    if outcome.is_open_ask and (outcome.search_id is not None or not isinstance(outcome.reason, PolicyRefusal)):
        raise InvalidRequest("Only a policy refusal before any search is an open ask.", param="is_open_ask")
