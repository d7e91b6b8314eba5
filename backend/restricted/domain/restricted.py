"""The values of restricted searches, from request to audit record. They hold no text of a base but summaries."""

from datetime import datetime
from typing import NamedTuple, Self

from pydantic import Field

from backend.foundation.domain.paging import PageQuery
from backend.knowledge.domain.knowledge import MemberRole
from shared.models.knowledge_api import ToldFact
from shared.models.safe_summary import (
    Decision,
    Failure,
    GateBlock,
    GateCode,
    PolicyRefusal,
    Reason,
    ReleasedSummary,
    SummaryVersions,
)
from shared.models.values import Instant, Value

MAX_PREVIEW_CHARACTERS = 200
"""The length of the beginning of a released summary that its audit record holds."""


class SearchRequest(NamedTuple):
    """A search by ticket.

    With no `base_ids` it is a search in all bases of the ticket. Bases of fewer tokens than `whole_below_tokens` are
    returned whole.
    """

    query: str
    base_ids: tuple[str, ...]
    limit: int
    whole_below_tokens: int


class SearchedBase(Value):
    """A base as it was when it was searched, and the searcher's role in it, perhaps by the group `via`."""

    id: str
    version: int
    role: MemberRole
    via: str | None = Field(default=None, exclude=True)


class Candidate(Value):
    """A chunk that a search found; `ordinal` is its place in the document."""

    knowledge_base_id: str
    document_id: str
    chunk_id: str
    ordinal: int


class SealedSearch(Value):
    """One search of a restricted member; `cache_key` is the key of its released result.

    `via` names for each base the group by which the member has their role, where it is not their own.
    """

    id: str
    tenant: str
    user_id: str
    conversation_id: str
    turn_id: str
    searched_at: Instant
    bases: tuple[SearchedBase, ...]
    versions: SummaryVersions
    cache_key: str
    via: dict[str, str] | None = None

    @property
    def base_ids(self) -> tuple[str, ...]:
        """Return the ids of the bases."""
        return tuple(base.id for base in self.bases)


class BudgetLeft(Value):
    """The searches and chunks that a user has left in one base; `chunks` is None where their number is not bounded."""

    knowledge_base_id: str
    conversation: int
    day: int
    month: int
    chunks: int | None


class SearchAdmission(Value):
    """The answer to a search that is to be charged: a refusal, or the chunks that may be sent, best first.

    `chunks_new` counts those of them that were not sent to this user within the day.
    """

    refusal: Failure | None
    chunk_ids: tuple[str, ...]
    chunks_found: int
    chunks_new: int
    budget_before: tuple[BudgetLeft, ...]
    budget_after: tuple[BudgetLeft, ...]


class Ruling(Value):
    """The decision on a search; `digest` is that of the reported outcome, or "" if none was reported."""

    digest: str
    is_released: bool
    reason: Reason


class ChargedSearch(Value):
    """A search that was charged, and its ruling once there is one."""

    search: SealedSearch
    admission: SearchAdmission
    ruling: Ruling | None


class AuditedBase(Value):
    """A base that a restricted search was about."""

    id: str
    version: int


class AuditRecord(Value):
    """The permanent record of a restricted search, without query and chunks, and with no summary but `preview`.

    The record of a forged ticket has no ids, no bases and no versions, and its tenant is "".
    `is_cached`: an earlier release was returned again. Budgets are None where nothing was to be charged. `facts` is how
    many sentences of the source the answer tells; None where answers are not weighed. `via` is that of the search.
    """

    id: str
    recorded_at: Instant
    tenant: str
    user_hash: str
    conversation_id: str
    turn_id: str
    search_id: str | None
    bases: tuple[AuditedBase, ...]
    versions: SummaryVersions | None
    decision: Decision
    reason: Reason
    gate_codes: tuple[GateCode, ...] = ()
    rewrites: int = 0
    latency_ms: int = 0
    chunks_found: int = 0
    chunks_sent: int = 0
    chunks_distinct: int = 0
    canary_hits: int = 0
    is_cached: bool = False
    budget_before: tuple[BudgetLeft, ...] | None = None
    budget_after: tuple[BudgetLeft, ...] | None = None
    preview: str = ""
    facts: int | None = None
    via: dict[str, str] | None = None


class AuditQuery(PageQuery):
    """A page of audit records: those of a user, of a base and with a reason; None sets no condition.

    The record of a forged ticket has no user and no base.
    """

    user_id: str | None = None
    knowledge_base_id: str | None = None
    reason: Reason | None = None


class AuditPage(NamedTuple):
    """Some audit records, and whether more records follow."""

    records: tuple[AuditRecord, ...]
    has_more: bool


class Settlement(Value):
    """An outcome to be written in one transaction: record, ruling, release, and the user whose pause it may cause.

    `released` is to be kept for equal searches, `shown` is what the user gets, which may have been released before.
    `is_open_ask`: a request was refused before any search and guessed at nothing. Of `facts` at most `most_facts` of a
    document may be told to the user in 30 days.
    """

    record: AuditRecord
    ruling: Ruling
    user_id: str
    cache_key: str | None
    released: ReleasedSummary | None
    shown: ReleasedSummary | None = None
    is_open_ask: bool = False
    facts: tuple[ToldFact, ...] = ()
    most_facts: int = 0

    def refuse(self, reason: Failure) -> Self:
        """Return it without the release."""
        told = {"decision": Decision.REFUSE, "reason": reason, "preview": "", "facts": None}
        return self.model_copy(
            update={
                "record": self.record.model_copy(update=told),
                "ruling": self.ruling.model_copy(update={"is_released": False, "reason": reason}),
                "released": None,
                "shown": None,
                "facts": (),
            }
        )

    @property
    def counts_towards_pause(self) -> bool:
        """Whether the user's query caused the outcome: a policy refusal, a blocked summary or too little evidence.

        Too little evidence counts because it reveals that words are not in a base. Exhausted budgets, pauses and
        failures of models or services do not count, nor does an open ask: nothing can be tried out with it.
        """
        reason = self.record.reason
        is_caused = isinstance(reason, PolicyRefusal | GateBlock) or reason is Failure.INSUFFICIENT_EVIDENCE
        return is_caused and not self.is_open_ask


def preview_of(released: ReleasedSummary) -> str:
    """Return the beginning of a released summary, or the codes of its findings."""
    codes = "; ".join("/".join(finding.model_dump().values()) for finding in released.findings)
    return (codes or released.summary)[:MAX_PREVIEW_CHARACTERS]


def change_since(search: SealedSearch, today: tuple[SearchedBase, ...]) -> Failure | None:
    """Return whether access, or else content, has changed since a search was made; None if neither has."""
    roles = {base.id: base.role for base in today}
    if any(roles.get(base.id) is not base.role for base in search.bases):
        return Failure.ACCESS_CHANGED
    versions = {base.id: base.version for base in today}
    if any(versions[base.id] != base.version for base in search.bases):
        return Failure.BASE_CHANGED
    return None


class RefusalHistory(Value):
    """A member's newest refusals in one base, oldest first, and the end of the newest pause."""

    refused_at: tuple[Instant, ...] = ()
    paused_until: Instant | None = None

    def is_paused(self, now: datetime) -> bool:
        """Return whether searches are refused now."""
        return self.paused_until is not None and now < self.paused_until
