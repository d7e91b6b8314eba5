"""Log lines and Prometheus metrics about turns in chat_shell."""

import structlog
from prometheus_client import Counter, Gauge

from chat_shell.tools.domain.tool_answers import ToolAnswer
from shared.models.events import Usage
from shared.models.execution import ExecutionRequest, Purpose
from shared.prompts.knowledge_tools import KNOWLEDGE_TOOLS
from shared.prompts.read_file import READ_FILE
from shared.telemetry import LogEvent, bind_ids

log = structlog.get_logger("chat_shell.turn")

TURNS = Counter("ballast_turns_total", "Turns by how they ended", ["outcome"])
SUMMARIES = Counter(
    "ballast_summaries_total", "Model calls that summarise a long conversation, by outcome", ["outcome"]
)
STREAMS_ACTIVE = Gauge("ballast_streams_active", "Turns running now")
TOOL_CALLS = Counter("ballast_tool_calls_total", "Calls of tools, by whether they have failed", ["tool", "outcome"])
CACHED_TOKENS = Counter("ballast_provider_cached_tokens_total", "Input tokens that the provider read from its cache")


class LoggingTurnObserver:
    """Implements `TurnObserver`; no text of users or documents reaches a line or a label."""

    def turn_started(self, request: ExecutionRequest) -> None:
        """Log the start and put the turn's ids on all lines of this task."""
        bind_ids(request_id=request.request_id, conversation_id=request.conversation_id, turn_id=request.turn_id)
        STREAMS_ACTIVE.inc()
        log.info(
            LogEvent.TURN_STARTED,
            model=request.model,
            purpose=request.purpose.value,
            epoch=request.epoch,
            history_messages=len(request.history),
            knowledge_bases=[base.id for base in request.knowledge.bases],
            access_mode=request.knowledge.access_mode.value,
            has_dynamic_context=bool(request.kb_meta_prompt.strip() or request.dynamic_blocks),
        )

    def turn_finished(self, request: ExecutionRequest, outcome: str, usage: Usage) -> None:
        """Log the end and count it."""
        STREAMS_ACTIVE.dec()
        ends = SUMMARIES if request.purpose is Purpose.SUMMARY else TURNS
        ends.labels(outcome).inc()
        CACHED_TOKENS.inc(usage.cached_tokens or 0)
        ended = {"outcome": outcome, "purpose": request.purpose.value}
        log.info(LogEvent.TURN_FINISHED, **ended, usage=usage.model_dump(exclude_none=True))

    def tool_answered(self, request: ExecutionRequest, tool: str, answer: ToolAnswer) -> None:
        """Log which tool ran and how much it brought, never what."""
        served = (each.definition.name for each in request.served_tools)
        known = tool in KNOWLEDGE_TOOLS or tool == READ_FILE or tool in served
        # A name that the model has made up is text of the model, and would be a series of its own.
        TOOL_CALLS.labels(tool if known else "other", "failed" if answer.failed else "answered").inc()
        log.info(LogEvent.TOOL_CALLED, tool=tool, failed=answer.failed, documents=len(answer.documents))

    def tool_failed(self, request: ExecutionRequest, tool: str, error: BaseException) -> None:
        """Log a defect with its traceback."""
        log.error("Tool failed", tool=tool, exc_info=error)
