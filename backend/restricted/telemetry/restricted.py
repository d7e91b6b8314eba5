"""Metrics and log lines of restricted searches: one line and two figures each, and no text."""

import structlog
from prometheus_client import Counter

from backend.foundation.telemetry.outcomes import OUTCOMES
from backend.restricted.domain.restricted import AuditRecord
from shared.models.safe_summary import GateCode

log = structlog.get_logger("backend.restricted")

SAFE_SUMMARIES = Counter(
    "ballast_safe_summary_total",
    "Restricted searches by what became of them",
    ["decision", "reason"],
    registry=OUTCOMES,
)
GATE_REJECTIONS = Counter(
    "ballast_gate_rejections_total", "Checks of the gate that a summary failed", ["gate"], registry=OUTCOMES
)
# Shown as 0 before anything is counted: Prometheus takes a series that begins with 1 for one that has not grown.
for _code in GateCode:
    GATE_REJECTIONS.labels(_code.value)


class LoggingSafeSummaryObserver:
    """The `SafeSummaryObserver` that logs and counts."""

    def note_decision(self, record: AuditRecord) -> None:
        """Log and count it; every label is of a closed list."""
        SAFE_SUMMARIES.labels(record.decision.value, record.reason.value).inc()
        for code in record.gate_codes:
            GATE_REJECTIONS.labels(code.value).inc()
        log.info(
            "Safe summary recorded",
            audit_id=record.id,
            search_id=record.search_id,
            decision=record.decision.value,
            reason=record.reason.value,
            gate_codes=[code.value for code in record.gate_codes],
            knowledge_bases=[base.id for base in record.bases],
            chunks_found=record.chunks_found,
            chunks_sent=record.chunks_sent,
            is_cached=record.is_cached,
        )

    def not_closable(self, search_id: str, error: BaseException) -> None:
        """Log it; the search stays without a record until its row is mended."""
        log.error("Restricted search not closed", search_id=search_id, exc_info=error)
