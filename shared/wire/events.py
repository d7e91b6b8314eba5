"""The events of a turn, and models on offer. Deltas come by the thousand, so both functions treat them first."""

from collections.abc import Callable

from pydantic import ValidationError

from protos.execution.v1 import chat_shell_pb2 as models_pb
from protos.execution.v1 import events_pb2 as pb
from shared.errors import InvalidRequest
from shared.models.events import (
    CitationAdded,
    ErrorReport,
    ExecutionEvent,
    FinishReason,
    FunctionCallRequested,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    ModelCard,
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
from shared.models.invalid_fields import refusal_of
from shared.models.messages import AddedMessage, UserMessage
from shared.wire.messages import messages_from_proto, write_messages
from shared.wire.values import known, optional, refusal, require, unwritable

REASON_TO_PROTO = {
    FinishReason.STOP: pb.FINISH_REASON_STOP,
    FinishReason.LENGTH: pb.FINISH_REASON_LENGTH,
    FinishReason.CONTENT_FILTER: pb.FINISH_REASON_CONTENT_FILTER,
    FinishReason.TOOL_CALLS: pb.FINISH_REASON_TOOL_CALLS,
}
REASON_FROM_PROTO = {number: reason for reason, number in REASON_TO_PROTO.items()}


ToolEvent = CitationAdded | SearchStarted | SearchFinished | FunctionCallRequested
Milestone = ModelCallStarted | ModelCallFinished | MessagesAdded | TurnFinished | TurnFailed | ToolEvent


def event_to_proto(event: ExecutionEvent) -> pb.ExecutionEvent:
    """Write an event.

    Raises:
        InvalidRequest: a lone surrogate, or a number beyond 64 bits.
    """
    try:
        match event:
            case TextDelta():
                return pb.ExecutionEvent(text_delta=event.text)
            case ReasoningDelta():
                return pb.ExecutionEvent(reasoning_delta=event.text)
            case RefusalDelta():
                return pb.ExecutionEvent(refusal_delta=event.text)
            case _:
                return _milestone_to_proto(event)
    except ValueError as error:
        raise unwritable(event) from error


def event_from_proto(event: pb.ExecutionEvent) -> ExecutionEvent:
    """Read an event.

    Raises:
        InvalidRequest: a kind that is not known here, or a malformed value.
    """
    kind = event.WhichOneof("event")
    if kind == "text_delta":
        return TextDelta(text=event.text_delta)
    if kind is None:
        raise InvalidRequest("the event is of no kind that is known here", param="event")
    try:
        return READERS[kind](event)
    except ValidationError as error:
        raise refusal_of(error, kind) from error


def report_to_proto(report: ErrorReport) -> pb.ErrorReport:
    """Write a failure."""
    try:
        return pb.ErrorReport(
            type=report.type,
            code=report.code,
            message=report.message,
            param=report.param,
            retryable=report.retryable,
        )
    except ValueError as error:
        raise unwritable(report) from error


def report_from_proto(report: pb.ErrorReport) -> ErrorReport:
    """Read a failure."""
    return ErrorReport(
        type=report.type,
        code=report.code,
        message=report.message,
        param=optional(report, "param"),
        retryable=report.retryable,
    )


def card_to_proto(card: ModelCard) -> models_pb.ModelCard:
    """Write a model's card."""
    try:
        return models_pb.ModelCard(
            name=card.name,
            context_window_tokens=card.context_window_tokens,
            max_output_tokens=card.max_output_tokens,
        )
    except ValueError as error:
        raise unwritable(card) from error


def card_from_proto(card: models_pb.ModelCard) -> ModelCard:
    """Read a model's card."""
    return ModelCard(
        name=card.name,
        context_window_tokens=card.context_window_tokens,
        max_output_tokens=card.max_output_tokens,
    )


def _milestone_to_proto(event: Milestone) -> pb.ExecutionEvent:
    match event:
        case ModelCallStarted():
            return pb.ExecutionEvent(model_call_started=pb.ModelCallStarted(call=event.call))
        case ModelCallFinished():
            finished = pb.ModelCallFinished(
                call=event.call,
                finish_reason=REASON_TO_PROTO[event.finish_reason],
                usage=_usage_to_proto(event.usage),
            )
            return pb.ExecutionEvent(model_call_finished=finished)
        case MessagesAdded():
            added = pb.ExecutionEvent(messages_added=pb.MessagesAdded())
            write_messages(event.messages, added.messages_added.messages.add)
            return added
        case TurnFinished():
            ended = pb.TurnFinished(
                finish_reason=REASON_TO_PROTO[event.finish_reason], usage=_usage_to_proto(event.usage)
            )
            return pb.ExecutionEvent(turn_finished=ended)
        case TurnFailed():
            failed = pb.TurnFailed(error=report_to_proto(event.error), usage=_usage_to_proto(event.usage))
            return pb.ExecutionEvent(turn_failed=failed)
        case _:
            return _tool_event_to_proto(event)


def _tool_event_to_proto(event: ToolEvent) -> pb.ExecutionEvent:
    match event:
        case CitationAdded():
            citation = pb.CitationAdded(
                number=event.number, file_id=event.file_id, filename=event.filename, index=event.index
            )
            return pb.ExecutionEvent(citation_added=citation)
        case SearchStarted():
            started = pb.SearchStarted(call_id=event.call_id, queries=event.queries)
            return pb.ExecutionEvent(search_started=started)
        case SearchFinished():
            results = [_result_to_proto(result) for result in event.results]
            finished = pb.SearchFinished(call_id=event.call_id, failed=event.failed, results=results)
            return pb.ExecutionEvent(search_finished=finished)
        case FunctionCallRequested():
            requested = pb.FunctionCallRequested(call_id=event.call_id, name=event.name, arguments=event.arguments)
            return pb.ExecutionEvent(function_call_requested=requested)


def _usage_to_proto(usage: Usage) -> pb.Usage:
    return pb.Usage(
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
    )


def _usage_from_proto(usage: pb.Usage) -> Usage:
    return Usage(
        input_tokens=optional(usage, "input_tokens"),
        cached_tokens=optional(usage, "cached_tokens"),
        cache_write_tokens=optional(usage, "cache_write_tokens"),
        output_tokens=optional(usage, "output_tokens"),
        reasoning_tokens=optional(usage, "reasoning_tokens"),
    )


def _result_to_proto(result: SearchResult) -> pb.SearchResult:
    return pb.SearchResult(
        number=result.number,
        file_id=result.file_id,
        filename=result.filename,
        score=result.score,
        text=result.text,
    )


def _result_from_proto(result: pb.SearchResult) -> SearchResult:
    return SearchResult(
        number=result.number,
        file_id=result.file_id,
        filename=result.filename,
        score=result.score,
        text=result.text,
    )


def _read_call_finished(event: pb.ExecutionEvent) -> ModelCallFinished:
    finished = event.model_call_finished
    return ModelCallFinished(
        call=finished.call,
        finish_reason=known(REASON_FROM_PROTO, finished.finish_reason, "model_call_finished.finish_reason"),
        usage=_usage_from_proto(finished.usage),
    )


def _read_citation(event: pb.ExecutionEvent) -> CitationAdded:
    citation = event.citation_added
    return CitationAdded(
        number=citation.number, file_id=citation.file_id, filename=citation.filename, index=citation.index
    )


def _read_search_finished(event: pb.ExecutionEvent) -> SearchFinished:
    finished = event.search_finished
    results = tuple(_result_from_proto(result) for result in finished.results)
    return SearchFinished(call_id=finished.call_id, failed=finished.failed, results=results)


def _read_function_call(event: pb.ExecutionEvent) -> FunctionCallRequested:
    call = event.function_call_requested
    return FunctionCallRequested(call_id=call.call_id, name=call.name, arguments=call.arguments)


def _read_messages_added(event: pb.ExecutionEvent) -> MessagesAdded:
    added: list[AddedMessage] = []
    for index, message in enumerate(messages_from_proto(event.messages_added.messages, "messages")):
        if isinstance(message, UserMessage):
            raise refusal(f"messages[{index}]", "a turn adds no user message")
        added.append(message)
    return MessagesAdded(messages=tuple(added))


def _read_turn_finished(event: pb.ExecutionEvent) -> TurnFinished:
    finished = event.turn_finished
    return TurnFinished(
        finish_reason=known(REASON_FROM_PROTO, finished.finish_reason, "turn_finished.finish_reason"),
        usage=_usage_from_proto(finished.usage),
    )


def _read_turn_failed(event: pb.ExecutionEvent) -> TurnFailed:
    failed = event.turn_failed
    require(failed.HasField("error"), "turn_failed.error")
    return TurnFailed(error=report_from_proto(failed.error), usage=_usage_from_proto(failed.usage))


READERS: dict[str, Callable[[pb.ExecutionEvent], ExecutionEvent]] = {
    "reasoning_delta": lambda event: ReasoningDelta(text=event.reasoning_delta),
    "refusal_delta": lambda event: RefusalDelta(text=event.refusal_delta),
    "model_call_started": lambda event: ModelCallStarted(call=event.model_call_started.call),
    "citation_added": _read_citation,
    "model_call_finished": _read_call_finished,
    "search_started": lambda event: SearchStarted(
        call_id=event.search_started.call_id, queries=tuple(event.search_started.queries)
    ),
    "search_finished": _read_search_finished,
    "function_call_requested": _read_function_call,
    "messages_added": _read_messages_added,
    "turn_finished": _read_turn_finished,
    "turn_failed": _read_turn_failed,
}
