"""Restricted searches and audit records to rows and back."""

from collections.abc import Sequence

import orjson
from pydantic import TypeAdapter

from backend.foundation.sql.parameters import to_json
from backend.foundation.sql.statements import Row
from backend.restricted.domain.restricted import (
    AuditRecord,
    ChargedSearch,
    RefusalHistory,
    Ruling,
    SealedSearch,
    SearchAdmission,
)
from shared.models.values import Instant, Value

Parameters = dict[str, object]

_INSTANTS = TypeAdapter(tuple[Instant, ...])
_JSON_OF_SEARCH = ("bases", "versions", "via")
_JSON_OF_RECORD = ("bases", "versions", "via", "gate_codes", "budget_before", "budget_after")


def search_parameters(search: SealedSearch, admission: SearchAdmission) -> Parameters:
    """Make the row of a search that was charged."""
    return {**_columns(search, _JSON_OF_SEARCH), "admission": admission.model_dump_json()}


def to_search(row: Row) -> ChargedSearch:
    """Read a search with what became of it."""
    ruling = row["ruling"]
    return ChargedSearch(
        search=SealedSearch.model_validate(_fields(SealedSearch, row, _JSON_OF_SEARCH)),
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
    enums = {"decision": record.decision.value, "reason": record.reason.value}
    return {**_columns(record, _JSON_OF_RECORD), **enums}


def to_record(row: Row) -> AuditRecord:
    """Read an audit record."""
    return AuditRecord.model_validate(_fields(AuditRecord, row, _JSON_OF_RECORD))


def _columns(value: Value, json_names: Sequence[str]) -> Parameters:
    in_json = value.model_dump(mode="json", include=set(json_names))
    texts = {name: to_json(part) for name, part in in_json.items() if part is not None}
    return {**value.model_dump(), **texts}


def _fields(kind: type[Value], row: Row, json_names: Sequence[str]) -> Parameters:
    parts = {name: orjson.loads(row[name]) for name in json_names if row[name] is not None}
    return {**{name: row[name] for name in kind.model_fields}, **parts}
