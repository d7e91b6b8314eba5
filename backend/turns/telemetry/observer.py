"""The log lines and Prometheus metrics of turns."""

from time import time

import structlog
from prometheus_client import Counter, Gauge, Histogram

from backend.conversations.domain.model_calls import CacheMiss
from backend.conversations.domain.responses import ResponseStatus, StoredResponse
from backend.conversations.domain.waiting_turns import IfRunning
from backend.foundation.telemetry.outcomes import OUTCOMES
from backend.restricted.domain.outgoing_events import CutCause
from backend.turns.ports.observer import CompactionOutcome, TakeoverOutcome
from shared.telemetry import LogEvent, bind_ids

log = structlog.get_logger("backend.turn")

SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

QUEUED = Counter(
    "ballast_turns_queued_total", "Turns that had to wait for a running one, by what they asked for", ["if_running"]
)
STEERED = Counter("ballast_messages_steered_total", "Messages that have entered a running turn")
TURNS = Counter("ballast_turns_total", "Turns by how they ended", ["outcome"])
STREAMS_ACTIVE = Gauge("ballast_streams_active", "Turns running now")
EPOCHS = Counter("ballast_epochs_total", "Epochs by the reason that started them", ["reason"])
PROMPT_TOKENS = Counter(
    "ballast_prompt_tokens_total", "Estimated tokens sent to models, by whether the call before had sent them", ["part"]
)
ANSWERS_CUT = Counter(
    "ballast_answers_cut_total",
    "Answers that ended because they would have shown restricted knowledge",
    ["cause"],
    registry=OUTCOMES,
)
TAKEN_OVER = Counter(
    "ballast_turns_taken_over_total", "Turns taken over from another process, by what became of them", ["outcome"]
)
COMPACTIONS = Counter(
    "ballast_compactions_total", "Parts of conversations left out, by what stands in their place", ["outcome"]
)
COMPACTION_SECONDS = Histogram(
    "ballast_compaction_seconds", "How long turns waited for a part to be left out", buckets=SECONDS_BUCKETS
)
CACHE_MISSES = Counter(
    "ballast_cache_misses_total",
    "Model calls that missed their provider's cache, and its word",
    ["cause", "diagnosis"],
)
PROMPT_DRIFT = Counter("ballast_prompt_drift_total", "Model calls that moved what their epoch had sent; always 0")
FIRST_DELTA = Histogram(
    "ballast_ttft_seconds", "From the request to the first piece of the answer", buckets=SECONDS_BUCKETS
)
TURN_SECONDS = Histogram(
    "ballast_turn_seconds",
    "From the request to the end of a turn",
    ["outcome"],
    buckets=(*SECONDS_BUCKETS, 120, 300, 600),
)
INTER_DELTA = Histogram("ballast_inter_delta_seconds", "Between two pieces of an answer", buckets=SECONDS_BUCKETS)

# Shown as 0 before anything is counted: Prometheus takes a series that begins with 1 for one that has not grown.
for _cause in CutCause:
    ANSWERS_CUT.labels(_cause.value)
for _outcome in TakeoverOutcome:
    TAKEN_OVER.labels(_outcome.value)
for _status in filter(lambda each: each.is_terminal, ResponseStatus):
    TURNS.labels(_status.value)


class LoggingTurnObserver:
    """Implements `backend.turns.ports.observer.TurnObserver`; no text of users reaches a log line or a label."""

    def turn_queued(self, response: StoredResponse, how: IfRunning) -> None:
        """Log and count the turn that waits."""
        QUEUED.labels(how.value).inc()
        log.info(
            LogEvent.TURN_QUEUED,
            conversation_id=response.conversation_id,
            turn_id=response.id,
            if_running=how.value,
        )

    def turn_steered(self, response: StoredResponse, messages: int) -> None:
        """Log and count the messages."""
        STEERED.inc(messages)
        log.info(
            LogEvent.TURN_STEERED,
            conversation_id=response.conversation_id,
            turn_id=response.id,
            messages=messages,
        )

    def turn_started(self, response: StoredResponse, request_id: str) -> None:
        """Log the start and put the turn's ids on all lines of this task."""
        bind_ids(request_id=request_id, conversation_id=response.conversation_id, turn_id=response.id)
        STREAMS_ACTIVE.inc()
        log.info(LogEvent.TURN_STARTED, model=response.body.get("model"), background=response.background)

    def epoch_started(self, conversation_id: str, epoch: int, reason: str) -> None:
        """Log and count the epoch."""
        EPOCHS.labels(reason).inc()
        log.info(LogEvent.EPOCH_STARTED, conversation_id=conversation_id, epoch=epoch, reason=reason)

    def history_compacted(self, response: StoredResponse, outcome: CompactionOutcome, seconds: float) -> None:
        """Log and count the compaction, without any of the text."""
        COMPACTIONS.labels(outcome.value).inc()
        COMPACTION_SECONDS.observe(seconds)
        is_expected = outcome in (CompactionOutcome.SUMMARISED, CompactionOutcome.ELIDED)
        (log.info if is_expected else log.warning)(
            LogEvent.HISTORY_COMPACTED,
            conversation_id=response.conversation_id,
            turn_id=response.id,
            outcome=outcome.value,
            seconds=round(seconds, 3),
        )

    def prompt_sent(self, reused_tokens: int, new_tokens: int) -> None:
        """Count the tokens sent."""
        PROMPT_TOKENS.labels("reused").inc(reused_tokens)
        PROMPT_TOKENS.labels("new").inc(new_tokens)

    def prompt_drifted(self, response: StoredResponse, call: int, path: str) -> None:
        """Log and count the drift; the path names a place and holds no text."""
        PROMPT_DRIFT.inc()
        log.warning(
            LogEvent.PROMPT_DRIFT,
            conversation_id=response.conversation_id,
            turn_id=response.id,
            call=call,
            first_difference=path,
        )

    def cache_missed(self, miss: CacheMiss) -> None:
        """Count the miss."""
        CACHE_MISSES.labels(miss.cause, miss.diagnosis).inc()

    def first_delta(self, seconds: float) -> None:
        """Record the wait for the first delta."""
        FIRST_DELTA.observe(seconds)

    def deltas(self, count: int, seconds: float) -> None:
        """Record one interval for deltas that came together."""
        INTER_DELTA.observe(seconds)

    def turn_taken_over(self, response: StoredResponse, outcome: TakeoverOutcome) -> None:
        """Log and count the takeover."""
        TAKEN_OVER.labels(outcome.value).inc()
        log.warning(
            LogEvent.TURN_TAKEN_OVER,
            conversation_id=response.conversation_id,
            turn_id=response.id,
            outcome=outcome.value,
            takeovers=response.fence,
        )

    def turn_left(self, response: StoredResponse) -> None:
        """Log that another process has the turn now."""
        STREAMS_ACTIVE.dec()
        log.warning(LogEvent.TURN_LEFT, conversation_id=response.conversation_id, turn_id=response.id)

    def answer_cut(self, response: StoredResponse, cause: CutCause, seconds: float) -> None:
        """Log and count the cut, without any of the text."""
        ANSWERS_CUT.labels(cause.value).inc()
        log.warning(
            LogEvent.ANSWER_CUT,
            conversation_id=response.conversation_id,
            turn_id=response.id,
            cause=cause.value,
            seconds=round(seconds, 3),
        )

    def turn_finished(self, response: StoredResponse) -> None:
        """Log and count the end."""
        STREAMS_ACTIVE.dec()
        TURNS.labels(response.status.value).inc()
        TURN_SECONDS.labels(response.status.value).observe(max(0.0, time() - response.created_at.timestamp()))
        error = response.body.get("error")
        log.info(
            LogEvent.TURN_FINISHED,
            conversation_id=response.conversation_id,
            turn_id=response.id,
            outcome=response.status.value,
            error_type=error.get("type") if isinstance(error, dict) else None,
            usage=response.body.get("usage"),
        )

    def turn_broke(self, response_id: str, error: BaseException) -> None:
        """Log a defect with its traceback."""
        log.error("Turn broke", turn_id=response_id, exc_info=error)
