"""Restricted searches and audit records to rows and back."""

from typing import Any

from pydantic import TypeAdapter

from backend.foundation.sql.prepared import Row
from backend.restricted.domain.restricted import (
    AuditedBase,
    AuditRecord,
    BudgetLeft,
    ChargedSearch,
    RefusalHistory,
    Ruling,
    SealedSearch,
    SearchAdmission,
    SearchedBase,
)
from shared.models.safe_summary import GateCode, SummaryVersions
from shared.models.values import Instant

Parameters = dict[str, Any]

_BASES = TypeAdapter(tuple[SearchedBase, ...])
_INSTANTS = TypeAdapter(tuple[Instant, ...])
_BUDGETS = TypeAdapter(tuple[BudgetLeft, ...])
_RECORD_ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "bases": TypeAdapter(tuple[AuditedBase, ...]),
    "versions": TypeAdapter(SummaryVersions),
    "gate_codes": TypeAdapter(tuple[GateCode, ...]),
    "budget_before": _BUDGETS,
    "budget_after": _BUDGETS,
}


def search_parameters(search: SealedSearch, admission: SearchAdmission) -> Parameters:
    """Make the row of a search that was charged."""
    columns = search.model_dump()
    columns["bases"] = _BASES.dump_json(search.bases).decode()
    columns["versions"] = search.versions.model_dump_json()
    return {**columns, "admission": admission.model_dump_json()}


def to_search(row: Row) -> ChargedSearch:
    """Read a search with what became of it."""
    plain = {name: row[name] for name in SealedSearch.model_fields}
    plain["bases"] = _BASES.validate_json(row["bases"])
    plain["versions"] = SummaryVersions.model_validate_json(row["versions"])
    ruling = row["ruling"]
    return ChargedSearch(
        search=SealedSearch.model_validate(plain),
        admission=SearchAdmission.model_validate_json(row["admission"]),
        ruling=Ruling.model_validate_json(ruling) if ruling is not None else None,
    )


def refusal_parameters(refusals: RefusalHistory) -> Parameters:
    """Make the columns of a member's refusals."""
    return {
        "refused_at": _INSTANTS.dump_json(refusals.refused_at).decode(),
        "paused_until": refusals.paused_until,
    }


def to_refusals(row: Row) -> RefusalHistory:
    """Read a member's refusals."""
    return RefusalHistory(refused_at=_INSTANTS.validate_json(row["refused_at"]), paused_until=row["paused_until"])


def record_parameters(record: AuditRecord) -> Parameters:
    """Make the row of an audit record; what is None stays NULL."""
    columns = {**record.model_dump(), "decision": record.decision.value, "reason": record.reason.value}
    for name, adapter in _RECORD_ADAPTERS.items():
        value = getattr(record, name)
        columns[name] = adapter.dump_json(value).decode() if value is not None else None
    return columns


def to_record(row: Row) -> AuditRecord:
    """Read an audit record."""
    columns = dict(row)
    for name, adapter in _RECORD_ADAPTERS.items():
        if columns[name] is not None:
            columns[name] = adapter.validate_json(columns[name])
    return AuditRecord.model_validate(columns)
