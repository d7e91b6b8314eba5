"""Log lines about the sealed room: codes, counts, and the first characters of released summaries."""

from dataclasses import dataclass

import structlog

from chat_shell.sealed.backend_wire import OutcomeReceipt
from chat_shell.sealed.outcome import Outcome
from chat_shell.sealed.summary_prompt import Messages
from shared.models.safe_summary import Failure
from shared.telemetry import LogEvent
from shared.tracing import current_span

log = structlog.get_logger("chat_shell.sealed")

PURPOSE = "safe_summary"


@dataclass(frozen=True)
class LoggingRoomObserver:
    """Implements `RoomObserver`; requests to the secondary model are logged where the operator asked for it."""

    log_requests: bool

    def summary_started(self, base_ids: tuple[str, ...], *, query_characters: int, found: int, sent: int) -> None:
        """Log the numbers of chunks that were found and sent."""
        log.info(
            LogEvent.SAFE_SUMMARY_STARTED,
            knowledge_bases=list(base_ids),
            query_characters=query_characters,
            chunks_found=found,
            chunks_sent=sent,
        )

    def summary_completed(self, outcome: Outcome) -> None:
        """Log the outcome of the search."""
        current_span().set({"ballast.safe_summary.decision": outcome.decision.value})
        log.info(LogEvent.SAFE_SUMMARY_COMPLETED, **_outcome_fields(outcome))

    def outcome_sent(self, outcome: Outcome) -> None:
        """Log the outcome that is sent to the backend."""
        log.info(LogEvent.PERSIST_HTTP_REQUEST, search_id=outcome.search_id, **_outcome_fields(outcome))

    def outcome_answered(self, search_id: str | None, receipt: OutcomeReceipt, changed: Failure | None) -> None:
        """Log whether the backend has recorded the outcome."""
        log.info(
            LogEvent.PERSIST_HTTP_RESPONSE,
            search_id=search_id,
            status=receipt.status,
            recorded=receipt.recorded,
            release=receipt.release,
            reason=changed.value if changed else "",
        )

    def secondary_asked(self, model: str, messages: Messages, body_bytes: int) -> None:
        """Log the request without the text of the chunks."""
        if self.log_requests:
            log.info(
                LogEvent.LLM_REQUEST,
                purpose=PURPOSE,
                model=model,
                message_count=len(messages),
                body_bytes=body_bytes,
                body={"messages": [dict(message) for message in messages]},
            )

    def secondary_answered(self, model: str, reply_bytes: int, decision: str) -> None:
        """Log the size of the reply and the decision about it."""
        if self.log_requests:
            log.info(
                LogEvent.LLM_RESPONSE,
                purpose=PURPOSE,
                model=model,
                reply_bytes=reply_bytes,
                decision=decision,
            )


def _outcome_fields(outcome: Outcome) -> dict[str, object]:
    return {
        "knowledge_bases": list(outcome.knowledge_base_ids),
        "decision": outcome.decision.value,
        "reason": outcome.reason.value,
        "gate_codes": [code.value for code in outcome.gate_codes],
        "rewrites": outcome.rewrites,
        "canary_hits": outcome.canary_hits,
        "latency_ms": outcome.latency_ms,
        "preview": outcome.preview,
    }
