"""The audit of restricted searches, for administrators."""

from typing import Annotated, Literal, get_args

from fastapi import Depends, Query
from pydantic import BaseModel, BeforeValidator, Field

from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import ListPage, PrincipalName, unix_seconds
from backend.identity.http.caller import AdminDep
from backend.restricted.domain.restricted import AuditedBase, AuditQuery, AuditRecord, BudgetLeft
from backend.restricted.services.restricted_audit import ReadAudit
from shared.models.safe_summary import (
    AnswerReason,
    Decision,
    Failure,
    GateBlock,
    GateCode,
    PolicyRefusal,
    Reason,
    SummaryVersions,
)

REASONS = tuple(reason.value for kind in get_args(Reason) for reason in kind)

AuditDep = Annotated[ReadAudit, Depends(service_of(ReadAudit))]
router = new_router("Audit")


def _check_reason(value: object) -> object:
    if value not in REASONS:
        raise ValueError(f"must be one of {', '.join(REASONS)}")
    return value


class AuditPageQuery(AuditQuery):
    """An `AuditQuery` whose values are checked, with an error message that lists the reasons."""

    user_id: PrincipalName | None = None
    knowledge_base_id: str | None = Field(None, min_length=1, max_length=128)
    reason: Annotated[AnswerReason | PolicyRefusal | Failure | GateBlock, BeforeValidator(_check_reason)] | None = None


class ShownRecord(BaseModel):
    """The audit record of a restricted search.

    `user_hash` is the same for all records of a user. A record of a forged ticket names nobody and no base. Budgets
    are what was left before and after, null where nothing was to be charged. `preview` is the summary's beginning,
    empty once a document on which the summary rests is deleted. `facts` is how many sentences of the source it tells,
    null where answers are not weighed. `via` names the group by which the user had their role in a base, by the base's
    id; null where the roles were their own.
    """

    id: str
    object: Literal["safe_summary"] = "safe_summary"
    created_at: int
    user_hash: str
    conversation_id: str
    turn_id: str
    search_id: str | None
    knowledge_bases: list[AuditedBase]
    versions: SummaryVersions | None
    decision: Decision
    reason: AnswerReason | PolicyRefusal | Failure | GateBlock
    gate_codes: list[GateCode]
    rewrites: int
    latency_ms: int
    chunks_found: int
    chunks_sent: int
    chunks_distinct: int
    canary_hits: int
    is_cached: bool
    budget_before: list[BudgetLeft] | None
    budget_after: list[BudgetLeft] | None
    preview: str
    facts: int | None = None
    via: dict[str, str] | None = None


class RecordList(ListPage[ShownRecord]):
    """A page of records; `first_id` and `last_id` are empty on an empty page."""


@router.get("/v1/audit/safe_summaries", summary="List the audit records of restricted searches")
async def list_safe_summaries(audit: AuditDep, admin: AdminDep, page: Annotated[AuditPageQuery, Query()]) -> RecordList:
    """Return a page of the records of the administrator's tenant, the newest first unless asked otherwise.

    `user_id` selects a user of that tenant, by the user id of API keys; records of forged tickets belong to no user.
    """
    found = await audit.page(admin, page)
    shown = [_show(record) for record in found.records]
    return RecordList.of(shown, [record.id for record in shown], has_more=found.has_more)


def _show(record: AuditRecord) -> ShownRecord:
    same = {name: value for name, value in record if name in ShownRecord.model_fields}
    return ShownRecord.model_validate(
        {**same, "created_at": unix_seconds(record.recorded_at), "knowledge_bases": record.bases}
    )
