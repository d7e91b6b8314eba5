"""Values and stores for the contract of the restricted ledger."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from backend.foundation.sql.database import Database
from backend.knowledge.domain.knowledge import MemberRole
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.restricted.domain.restricted import (
    AuditedBase,
    AuditRecord,
    BudgetLeft,
    Candidate,
    Ruling,
    SealedSearch,
    SearchedBase,
    Settlement,
)
from backend.restricted.domain.restricted_budget import RestrictedLimits
from backend.restricted.ports.restricted import AuditTrail, RestrictedLedger
from backend.restricted.sql.audit import SqlAuditTrail
from backend.restricted.sql.ledger import SqlRestrictedLedger, forget_results_of
from backend.search.sql.index import SqlSearchIndex
from shared.models.safe_summary import (
    AnswerReason,
    Confidence,
    Decision,
    GateCode,
    Reason,
    ReleasedSummary,
    SummaryVersions,
)
from shared.receipts import ReceiptSigner
from tests.contract.knowledge_cases import T0
from tests.contract.store_cases import database_url, migrated
from tests.fakes.clock import FakeClock
from tests.fakes.restricted_ledger import FakeRestrictedLedger
from tests.fakes.store_knowledge import FakeKnowledge

SIGNER = ReceiptSigner("secret")
LIMITS = RestrictedLimits(conversation=8, day=20, month=60)
WIDE = RestrictedLimits(conversation=1000, day=1000, month=1000)
VERSIONS = SummaryVersions(policy_version="1", gate_version="2", prompt_version="3", model="safe-model")
RELEASED = ReleasedSummary(
    decision="answer",
    reason=AnswerReason.RISK,
    summary="Late bookings are the main risk. 风险",
    observations=("Bookings come late.",),
    risks=(),
    recommended_actions=(),
    confidence=Confidence.LOW,
)


class Restricted(NamedTuple):
    """What the ledger is tested with."""

    ledger: RestrictedLedger
    trail: AuditTrail
    knowledge: KnowledgeStore


def fake_restricted() -> Restricted:
    knowledge = FakeKnowledge()
    ledger = FakeRestrictedLedger(knowledge)
    return Restricted(ledger, ledger, knowledge)


def restricted_over(database: Database) -> Restricted:
    knowledge = SqlKnowledgeStore(
        database, FakeClock(), SqlSearchIndex(database, FakeClock()), deletion_hooks=(forget_results_of,)
    )
    return Restricted(SqlRestrictedLedger(database), SqlAuditTrail(database), knowledge)


@asynccontextmanager
async def sql_restricted(url: str) -> AsyncGenerator[Restricted]:
    async with migrated(url) as database:
        yield restricted_over(database)


@asynccontextmanager
async def opened_restricted(request: pytest.FixtureRequest, directory: Path) -> AsyncGenerator[Restricted]:
    """Open the kind of stores that a fixture asks for."""
    if request.param == "fake":
        yield fake_restricted()
        return
    async with sql_restricted(database_url(request.param, request, directory)) as opened:
        yield opened


def make_search(search_id: str, *base_ids: str, at: datetime = T0, days: float = 0, **changes: Any) -> SealedSearch:
    bases = tuple(
        SearchedBase(id=base_id, version=1, role=MemberRole.RESTRICTED_ANALYST) for base_id in base_ids or ("kb_a",)
    )
    search = SealedSearch(
        id=search_id,
        tenant="acme",
        user_id="ann",
        conversation_id="conv_a",
        turn_id="resp_a",
        searched_at=at + timedelta(days=days),
        bases=bases,
        versions=VERSIONS,
        cache_key=f"key-{search_id}",
    )
    return search.model_copy(update=changes)


def candidates(document_id: str, ordinals: Sequence[int], base_id: str = "kb_a") -> list[Candidate]:
    """Name chunks as `make_document` does."""
    return [
        Candidate(
            knowledge_base_id=base_id,
            document_id=document_id,
            chunk_id=f"chunk_{document_id}_{ordinal}",
            ordinal=ordinal,
        )
        for ordinal in ordinals
    ]


def make_record(record_id: str, search: SealedSearch | None, reason: Reason, **changes: Any) -> AuditRecord:
    """Make a record that holds something in every field."""
    left = (BudgetLeft(knowledge_base_id="kb_a", conversation=1, day=2, month=3, chunks=None),)
    record = AuditRecord(
        id=record_id,
        recorded_at=search.searched_at if search else T0,
        tenant=search.tenant if search else "",
        user_hash="hash",
        conversation_id=search.conversation_id if search else "",
        turn_id=search.turn_id if search else "",
        search_id=search.id if search else None,
        bases=tuple(AuditedBase(id=base.id, version=base.version) for base in search.bases) if search else (),
        versions=search.versions if search else None,
        decision=Decision.ANSWER if isinstance(reason, AnswerReason) else Decision.REFUSE,
        reason=reason,
        gate_codes=(GateCode.FIGURES, GateCode.OVERLAP),
        rewrites=1,
        latency_ms=1234,
        chunks_found=24,
        chunks_sent=12,
        chunks_distinct=6,
        canary_hits=2,
        is_cached=True,
        budget_before=left,
        budget_after=left,
        preview="Late 风险",
    )
    return record.model_copy(update=changes)


def settlement(record: AuditRecord, search: SealedSearch | None = None, *, is_released: bool = False) -> Settlement:
    return Settlement(
        record=record,
        ruling=Ruling(digest=f"digest-{record.id}", is_released=is_released, reason=record.reason),
        user_id=search.user_id if search else "ann",
        cache_key=search.cache_key if search else None,
        released=RELEASED if is_released else None,
        shown=RELEASED if is_released else None,
    )
