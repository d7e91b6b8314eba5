"""Convert the events of a turn and the cards of models to protobuf messages, and back.

A turn sends thousands of deltas, so both conversions of events handle deltas first.
"""

from collections.abc import Callable

from pydantic import ValidationError

from protos.execution.v1 import chat_shell_pb2 as models_pb
from protos.execution.v1 import events_pb2 as pb
from shared.errors import InvalidRequest
from shared.models.events import (
    CitationAdded,
    Cost,
    ErrorReport,
    ExecutionEvent,
    FinishReason,
    FunctionCallDelta,
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
    ServedCallFinished,
    ServedCallStarted,
    TextDelta,
    TextLogprobs,
    TurnEnd,
    TurnFailed,
    TurnFinished,
    TurnHandedBack,
    Usage,
)
from shared.models.invalid_fields import refusal_of
from shared.wire.messages import added_from_proto, write_messages
from shared.wire.values import known, object_from_proto, object_to_proto, optional, require, scalar_fields, unwritable

REASON_TO_PROTO = {reason: pb.FinishReason.Value(f"FINISH_REASON_{reason.name}") for reason in FinishReason}
REASON_FROM_PROTO = {number: reason for reason, number in REASON_TO_PROTO.items()}


ServedEvent = ServedCallStarted | ServedCallFinished
FunctionCall = FunctionCallDelta | FunctionCallRequested
ToolEvent = CitationAdded | SearchStarted | SearchFinished | FunctionCall | ServedEvent
Milestone = ModelCallStarted | ModelCallFinished | MessagesAdded | TurnEnd | ToolEvent


def event_to_proto(event: ExecutionEvent) -> pb.ExecutionEvent:
    """Convert an event to a protobuf message.

    Raises:
        InvalidRequest: a text holds a lone surrogate, or a number has more than 64 bits.
    """
    try:
        match event:
            case TextDelta():
                return pb.ExecutionEvent(text_delta=event.text)
            case ReasoningDelta():
                return pb.ExecutionEvent(reasoning_delta=event.text)
            case RefusalDelta():
                return pb.ExecutionEvent(refusal_delta=event.text)
            case TextLogprobs():
                return pb.ExecutionEvent(text_logprobs=event.tokens)
            case _:
                return _milestone_to_proto(event)
    except ValueError as error:
        raise unwritable(event) from error


def event_from_proto(event: pb.ExecutionEvent) -> ExecutionEvent:
    """Read an event from a protobuf message.

    Raises:
        InvalidRequest: the kind of the event is unknown, or a value is malformed.
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
    """Convert the report of a failure.

    Raises:
        InvalidRequest: a text holds a lone surrogate.
    """
    try:
        return pb.ErrorReport(**dict(report))
    except ValueError as error:
        raise unwritable(report) from error


def report_from_proto(report: pb.ErrorReport) -> ErrorReport:
    """Read the report of a failure."""
    return ErrorReport.model_validate(scalar_fields(report))


def card_to_proto(card: ModelCard) -> models_pb.ModelCard:
    """Convert the card of a model.

    Raises:
        InvalidRequest: the name holds a lone surrogate, or a number has more than 64 bits.
    """
    try:
        return models_pb.ModelCard(**dict(card))
    except ValueError as error:
        raise unwritable(card) from error


def card_from_proto(card: models_pb.ModelCard) -> ModelCard:
    """Read the card of a model."""
    return ModelCard.model_validate(scalar_fields(card) | {"extra_parameters": tuple(card.extra_parameters)})


def _milestone_to_proto(event: Milestone) -> pb.ExecutionEvent:
    match event:
        case ModelCallStarted():
            return pb.ExecutionEvent(model_call_started=pb.ModelCallStarted(call=event.call, reminder=event.reminder))
        case ModelCallFinished():
            reason, usage = REASON_TO_PROTO[event.finish_reason], pb.Usage(**dict(event.usage))
            cost = None if event.cost is None else pb.Cost(**dict(event.cost))
            finished = pb.ModelCallFinished(
                call=event.call, finish_reason=reason, usage=usage, cost=cost, left_out=event.left_out
            )
            return pb.ExecutionEvent(model_call_finished=finished)
        case MessagesAdded():
            added = pb.ExecutionEvent(messages_added=pb.MessagesAdded())
            write_messages(event.messages, added.messages_added.messages.add)
            return added
        case TurnFinished() | TurnHandedBack() | TurnFailed():
            return _end_to_proto(event)
        case _:
            return _tool_event_to_proto(event)


def _end_to_proto(event: TurnEnd) -> pb.ExecutionEvent:
    usage = pb.Usage(**dict(event.usage))
    match event:
        case TurnFinished():
            reason = REASON_TO_PROTO[event.finish_reason]
            return pb.ExecutionEvent(turn_finished=pb.TurnFinished(finish_reason=reason, usage=usage))
        case TurnHandedBack():
            handed = pb.TurnHandedBack(prompt_tokens=event.prompt_tokens, usage=usage)
            return pb.ExecutionEvent(turn_handed_back=handed)
        case TurnFailed():
            return pb.ExecutionEvent(turn_failed=pb.TurnFailed(error=report_to_proto(event.error), usage=usage))


def _tool_event_to_proto(event: ToolEvent) -> pb.ExecutionEvent:
    match event:
        case CitationAdded():
            return pb.ExecutionEvent(citation_added=pb.CitationAdded(**event.model_dump(exclude={"type"})))
        case SearchStarted():
            return pb.ExecutionEvent(search_started=pb.SearchStarted(**event.model_dump(exclude={"type"})))
        case SearchFinished():
            results = [_result_to_proto(result) for result in event.results]
            finished = pb.SearchFinished(call_id=event.call_id, failed=event.failed, results=results)
            return pb.ExecutionEvent(search_finished=finished)
        case FunctionCallDelta():
            return pb.ExecutionEvent(function_call_delta=pb.FunctionCallDelta(**event.model_dump(exclude={"type"})))
        case FunctionCallRequested():
            return pb.ExecutionEvent(
                function_call_requested=pb.FunctionCallRequested(**event.model_dump(exclude={"type"}))
            )
        case ServedCallStarted():
            return pb.ExecutionEvent(served_call_started=pb.ServedCallStarted(**event.model_dump(exclude={"type"})))
        case ServedCallFinished():
            return pb.ExecutionEvent(served_call_finished=pb.ServedCallFinished(**event.model_dump(exclude={"type"})))


def _result_to_proto(result: SearchResult) -> pb.SearchResult:
    attributes = object_to_proto({**result.attributes} or None, "results.attributes")
    plain = {name: value for name, value in result if name != "attributes"}
    return pb.SearchResult(**plain, attributes=attributes)


def _read_result(result: pb.SearchResult) -> SearchResult:
    attributes = object_from_proto(optional(result, "attributes"), "results.attributes")
    return SearchResult.model_validate({**scalar_fields(result), "attributes": attributes or {}})


def _usage_from_proto(usage: pb.Usage) -> Usage:
    return Usage.model_validate(scalar_fields(usage))


def _read_call_finished(event: pb.ExecutionEvent) -> ModelCallFinished:
    finished = event.model_call_finished
    return ModelCallFinished(
        call=finished.call,
        finish_reason=known(REASON_FROM_PROTO, finished.finish_reason, "model_call_finished.finish_reason"),
        usage=_usage_from_proto(finished.usage),
        cost=Cost.model_validate(scalar_fields(finished.cost)) if finished.HasField("cost") else None,
        left_out=tuple(finished.left_out),
    )


def _read_search_finished(event: pb.ExecutionEvent) -> SearchFinished:
    finished = event.search_finished
    results = tuple(map(_read_result, finished.results))
    return SearchFinished(call_id=finished.call_id, failed=finished.failed, results=results)


def _read_messages_added(event: pb.ExecutionEvent) -> MessagesAdded:
    return MessagesAdded(messages=added_from_proto(event.messages_added.messages, "messages"))


def _read_turn_finished(event: pb.ExecutionEvent) -> TurnFinished:
    finished = event.turn_finished
    return TurnFinished(
        finish_reason=known(REASON_FROM_PROTO, finished.finish_reason, "turn_finished.finish_reason"),
        usage=_usage_from_proto(finished.usage),
    )


def _read_turn_handed_back(event: pb.ExecutionEvent) -> TurnHandedBack:
    handed = event.turn_handed_back
    return TurnHandedBack(prompt_tokens=handed.prompt_tokens, usage=_usage_from_proto(handed.usage))


def _read_turn_failed(event: pb.ExecutionEvent) -> TurnFailed:
    failed = event.turn_failed
    require(failed.HasField("error"), "turn_failed.error")
    return TurnFailed(error=report_from_proto(failed.error), usage=_usage_from_proto(failed.usage))


READERS: dict[str, Callable[[pb.ExecutionEvent], ExecutionEvent]] = {
    "reasoning_delta": lambda event: ReasoningDelta(text=event.reasoning_delta),
    "refusal_delta": lambda event: RefusalDelta(text=event.refusal_delta),
    "text_logprobs": lambda event: TextLogprobs(tokens=event.text_logprobs),
    "model_call_started": lambda event: ModelCallStarted.model_validate(scalar_fields(event.model_call_started)),
    "citation_added": lambda event: CitationAdded.model_validate(scalar_fields(event.citation_added)),
    "model_call_finished": _read_call_finished,
    "search_started": lambda event: SearchStarted(
        call_id=event.search_started.call_id, queries=tuple(event.search_started.queries)
    ),
    "search_finished": _read_search_finished,
    "function_call_delta": lambda event: FunctionCallDelta.model_validate(scalar_fields(event.function_call_delta)),
    "function_call_requested": lambda event: FunctionCallRequested.model_validate(
        scalar_fields(event.function_call_requested)
    ),
    "served_call_started": lambda event: ServedCallStarted.model_validate(scalar_fields(event.served_call_started)),
    "served_call_finished": lambda event: ServedCallFinished.model_validate(scalar_fields(event.served_call_finished)),
    "messages_added": _read_messages_added,
    "turn_finished": _read_turn_finished,
    "turn_handed_back": _read_turn_handed_back,
    "turn_failed": _read_turn_failed,
}
