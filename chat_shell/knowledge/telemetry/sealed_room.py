"""What an operator sees of the sealed room: codes, counts, and the beginning of what was released."""

from dataclasses import dataclass

import structlog

from chat_shell.sealed.outcome import Outcome
from chat_shell.sealed.room_observer import OutcomeAnswered, SecondaryAnswered, SecondaryAsked, SummaryStarted
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

    def summary_completed(self, outcome: Outcome) -> None:
        """Log how the search ended."""
        log.info(LogEvent.SAFE_SUMMARY_COMPLETED, **_outcome_fields(outcome))

    def outcome_sent(self, outcome: Outcome) -> None:
        """Log the outcome that is sent to be recorded."""
        log.info(LogEvent.PERSIST_HTTP_REQUEST, search_id=outcome.search_id, **_outcome_fields(outcome))

    def outcome_answered(self, answered: OutcomeAnswered) -> None:
        """Log whether it was recorded."""
        log.info(
            LogEvent.PERSIST_HTTP_RESPONSE,
            search_id=answered.search_id,
            status=answered.status,
            recorded=answered.recorded,
            release=answered.release,
            reason=answered.changed.value if answered.changed else "",
        )

    def secondary_asked(self, asked: SecondaryAsked) -> None:
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

    def secondary_answered(self, answered: SecondaryAnswered) -> None:
        """Log the reply's size and what became of it."""
        if self.log_requests:
            log.info(
                LogEvent.LLM_RESPONSE,
                purpose=PURPOSE,
                model=answered.model,
                reply_bytes=answered.reply_bytes,
                decision=answered.decision,
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
