"""The budgets of restricted members: pure rules over counts whose rows the caller has locked.

All counts are per user and base, over all versions of the base together, so that a change of its documents gives
nobody further searches.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from backend.restricted.domain.restricted import BudgetLeft, Candidate, RefusalHistory, SearchAdmission
from shared.models.safe_summary import Failure
from shared.models.values import Value

DAY = timedelta(days=1)
MONTH = timedelta(days=30)
"""Rolling windows, so that no budget doubles around midnight."""

MAX_CHUNK_SHARE_PERCENT = 20
"""The share of a base's chunks that a user's searches may send within a day, so that no crawl covers most of it."""

FEWEST_BOUNDED_CHUNKS = 50
"""In a smaller base a fifth is too little to summarise; there only the number of searches is bounded."""

REFUSALS_PER_PAUSE = 5
REFUSAL_WINDOW = timedelta(minutes=10)
PAUSE = timedelta(minutes=15)


class RestrictedLimits(Value):
    """The most searches of a user in a base: in a conversation (of the last 30 days), in a day, in 30 days.

    `facts` is how many sentences of a document answers may tell the user in 30 days.
    """

    conversation: int
    day: int
    month: int
    facts: int = 20


class BaseUsage(Value):
    """What a user has used of a base by now; `served_today` holds the ids of the chunks that were sent."""

    knowledge_base_id: str
    chunk_count: int
    refusals: RefusalHistory
    conversation: int
    day: int
    month: int
    served_today: frozenset[str]

    @property
    def chunks_left(self) -> int | None:
        """How many chunks may still be sent that were not sent today; None where that is not bounded."""
        if self.chunk_count < FEWEST_BOUNDED_CHUNKS:
            return None
        return max(0, self.chunk_count * MAX_CHUNK_SHARE_PERCENT // 100 - len(self.served_today))


def admit(
    usages: Sequence[BaseUsage], candidates: Sequence[Candidate], limits: RestrictedLimits, now: datetime
) -> SearchAdmission:
    """Charge one search to each base and choose what of it may be sent, or refuse it whole."""
    before = tuple(_count_left(usage, limits) for usage in usages)
    kept, new = _cut(usages, candidates)
    refusal = _refusal(usages, before, now) or (Failure.BUDGET_CHUNKS if candidates and not kept else None)
    found = len(candidates)
    if refusal is not None:
        return SearchAdmission(
            refusal=refusal, chunk_ids=(), chunks_found=found, chunks_new=0, budget_before=before, budget_after=before
        )
    return SearchAdmission(
        refusal=None,
        chunk_ids=tuple(chunk.chunk_id for chunk in kept),
        chunks_found=found,
        chunks_new=len(new),
        budget_before=before,
        budget_after=tuple(_charge(left, new) for left in before),
    )


def add_refusal(refusals: RefusalHistory, now: datetime) -> RefusalHistory:
    """Count a refusal; `REFUSALS_PER_PAUSE` of them within `REFUSAL_WINDOW` begin a pause and empty the history."""
    recent = (*(at for at in refusals.refused_at if at > now - REFUSAL_WINDOW), now)
    if len(recent) < REFUSALS_PER_PAUSE:
        return RefusalHistory(refused_at=recent, paused_until=refusals.paused_until)
    return RefusalHistory(refused_at=(), paused_until=now + PAUSE)


def _refusal(usages: Sequence[BaseUsage], left: Sequence[BudgetLeft], now: datetime) -> Failure | None:
    if any(usage.refusals.is_paused(now) for usage in usages):
        return Failure.PAUSED
    if any(budget.conversation == 0 for budget in left):
        return Failure.BUDGET_CONVERSATION
    if any(budget.day == 0 for budget in left):
        return Failure.BUDGET_DAY
    if any(budget.month == 0 for budget in left):
        return Failure.BUDGET_MONTH
    return None


def _cut(usages: Sequence[BaseUsage], candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """Return the candidates that the chunk budgets leave, and those among them that were not sent today."""
    served = frozenset[str]().union(*(usage.served_today for usage in usages))
    left = {usage.knowledge_base_id: usage.chunks_left for usage in usages}
    kept: list[Candidate] = []
    new: list[Candidate] = []
    for chunk in candidates:
        remaining = left[chunk.knowledge_base_id]
        if chunk.chunk_id not in served:
            if remaining == 0:
                continue
            left[chunk.knowledge_base_id] = None if remaining is None else remaining - 1
            new.append(chunk)
        kept.append(chunk)
    return kept, new


def _count_left(usage: BaseUsage, limits: RestrictedLimits) -> BudgetLeft:
    return BudgetLeft(
        knowledge_base_id=usage.knowledge_base_id,
        conversation=max(0, limits.conversation - usage.conversation),
        day=max(0, limits.day - usage.day),
        month=max(0, limits.month - usage.month),
        chunks=usage.chunks_left,
    )


def _charge(left: BudgetLeft, new: Sequence[Candidate]) -> BudgetLeft:
    sent = sum(chunk.knowledge_base_id == left.knowledge_base_id for chunk in new)
    return BudgetLeft(
        knowledge_base_id=left.knowledge_base_id,
        conversation=left.conversation - 1,
        day=left.day - 1,
        month=left.month - 1,
        chunks=None if left.chunks is None else left.chunks - sent,
    )
