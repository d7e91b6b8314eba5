"""What an operator sees of the sealed room: codes, counts, and the beginning of what was released."""

from dataclasses import dataclass
from typing import Any

import structlog

from chat_shell.sealed.watch import (
    ModelAnswered,
    ModelAsked,
    OutcomeAnswered,
    OutcomeSent,
    SummaryCompleted,
    SummaryStarted,
)
from shared.telemetry import LogEvent

log = structlog.get_logger("chat_shell.sealed")

PURPOSE = "safe_summary"


@dataclass(frozen=True)
class LoggingRoomObserver:
    """Implements `RoomObserver`; requests to the secondary model are logged where the operator asked for it."""

    log_requests: bool

    def summary_started(self, started: SummaryStarted) -> None:
        """Log how much evidence there is."""
        log.info(
            LogEvent.SAFE_SUMMARY_STARTED,
            knowledge_bases=list(started.knowledge_base_ids),
            query_characters=started.query_characters,
            chunks_found=started.chunks_found,
            chunks_sent=started.chunks_sent,
        )

    def summary_completed(self, completed: SummaryCompleted) -> None:
        """Log how the search ended."""
        log.info(LogEvent.SAFE_SUMMARY_COMPLETED, **_ending(completed))

    def outcome_sent(self, sent: OutcomeSent) -> None:
        """Log what is to be recorded."""
        log.info(LogEvent.PERSIST_HTTP_REQUEST, search_id=sent.search_id, **_ending(sent.completed))

    def outcome_answered(self, answered: OutcomeAnswered) -> None:
        """Log whether it was."""
        log.info(
            LogEvent.PERSIST_HTTP_RESPONSE,
            search_id=answered.search_id,
            status=answered.status,
            recorded=answered.recorded,
            release=answered.release,
            reason=answered.moved.value if answered.moved else "",
        )

    def model_asked(self, asked: ModelAsked) -> None:
        """Log the request without the text of the chunks."""
        if self.log_requests:
            log.info(
                LogEvent.LLM_REQUEST,
                purpose=PURPOSE,
                model=asked.model,
                message_count=len(asked.messages),
                body_bytes=asked.body_bytes,
                body={"messages": [dict(message) for message in asked.messages]},
            )

    def model_answered(self, answered: ModelAnswered) -> None:
        """Log the reply's size and what became of it."""
        if self.log_requests:
            log.info(
                LogEvent.LLM_RESPONSE,
                purpose=PURPOSE,
                model=answered.model,
                reply_bytes=answered.reply_bytes,
                decision=answered.decision,
            )


def _ending(completed: SummaryCompleted) -> dict[str, Any]:
    return {
        "knowledge_bases": list(completed.knowledge_base_ids),
        "decision": completed.decision.value,
        "reason": completed.reason.value,
        "gate_codes": [code.value for code in completed.gate_codes],
        "rewrites": completed.rewrites,
        "canary_hits": completed.canary_hits,
        "latency_ms": completed.latency_ms,
        "preview": completed.preview,
    }
