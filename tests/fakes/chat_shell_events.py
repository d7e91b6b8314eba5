"""One event of each kind, in an order in which a turn could report them."""

from shared.models.events import (
    CitationAdded,
    ErrorReport,
    ExecutionEvent,
    FinishReason,
    FunctionCallRequested,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    ReasoningDelta,
    RefusalDelta,
    SearchFinished,
    SearchResult,
    SearchStarted,
    TextDelta,
    TurnFailed,
    TurnFinished,
    Usage,
)
from shared.models.messages import AssistantMessage, ToolCall, ToolMessage

USAGE = Usage(input_tokens=100, cached_tokens=64, cache_write_tokens=0, output_tokens=7)
FINISHED = TurnFinished(finish_reason=FinishReason.STOP, usage=USAGE)
FAILED = TurnFailed(
    error=ErrorReport(
        type="ModelStalled", code="server_error", message="The model stalled.", param=None, retryable=True
    ),
    usage=Usage(),
)
WHOLE_TURN: tuple[ExecutionEvent, ...] = (
    ModelCallStarted(call=1),
    ReasoningDelta(text="Let me look."),
    SearchStarted(call_id="call_1", queries=("冷却", "cooling")),
    SearchFinished(
        call_id="call_1",
        failed=False,
        results=(SearchResult(number=1, file_id="doc_1", filename="a.md", score=1.5, text="By air."),),
    ),
    TextDelta(text="By air "),
    CitationAdded(number=1, file_id="doc_1", filename="a.md", index=7),
    TextDelta(text="[1] 🌬."),
    RefusalDelta(text="No more than that."),
    FunctionCallRequested(call_id="call_2", name="weather", arguments='{"city": "Köln"}'),
    ModelCallFinished(call=1, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
    MessagesAdded(
        messages=(
            AssistantMessage(
                text="By air [1].", tool_calls=(ToolCall(call_id="call_1", name="search", arguments="{}"),)
            ),
            ToolMessage(call_id="call_1", content="[1] By air."),
        )
    ),
    FINISHED,
)
EVERY_EVENT: tuple[ExecutionEvent, ...] = (*WHOLE_TURN, FAILED)
