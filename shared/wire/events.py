"""Convert the events of a turn and the cards of models to protobuf messages, and back.

A turn sends thousands of deltas, so both conversions of events handle deltas first.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, cast, get_args

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
    TurnFailed,
    TurnFinished,
    TurnHandedBack,
    Usage,
)
from shared.models.invalid_fields import refusal_of
from shared.models.values import Place, Value
from shared.wire.messages import added_from_proto, write_messages
from shared.wire.values import look_up, object_from_proto, object_to_proto, optional, require, scalar_fields, unwritable

REASON_TO_PROTO = {reason: pb.FinishReason.Value(f"FINISH_REASON_{reason.name}") for reason in FinishReason}
REASON_FROM_PROTO = {number: reason for reason, number in REASON_TO_PROTO.items()}

PlainEvent = (
    ModelCallStarted
    | SearchStarted
    | FunctionCallDelta
    | FunctionCallRequested
    | ServedCallStarted
    | ServedCallFinished
)
"""Events whose fields are those of their messages, one by one."""


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
    return ModelCard.model_validate(scalar_fields(card))


def _milestone_to_proto(event: ExecutionEvent) -> pb.ExecutionEvent:
    if isinstance(event, MessagesAdded):
        added = pb.ExecutionEvent(messages_added=pb.MessagesAdded())
        write_messages(event.messages, added.messages_added.messages.add)
        return added
    fields: dict[str, Any] = {name: _field_to_proto(value) for name, value in vars(event).items() if name != "type"}
    kinds: dict[str, Any] = {event.type: fields}
    return pb.ExecutionEvent(**kinds)


def _field_to_proto(value: object) -> object:
    match value:
        case FinishReason():
            return REASON_TO_PROTO[value]
        case SearchResult():
            return _result_to_proto(value)
        case Place():
            return value.model_dump_json()
        case Value():
            return {name: _field_to_proto(each) for name, each in vars(value).items()}
        case tuple():
            return list(map(_field_to_proto, cast("tuple[object, ...]", value)))
        case _:
            return value


def _result_to_proto(result: SearchResult) -> pb.SearchResult:
    attributes = object_to_proto({**result.attributes} or None, "results.attributes")
    plain: dict[str, Any] = {name: _field_to_proto(value) for name, value in result if name != "attributes"}
    return pb.SearchResult(**plain, attributes=attributes)


def _read_result(result: pb.SearchResult) -> SearchResult:
    attributes = object_from_proto(optional(result, "attributes"), "results.attributes")
    return SearchResult.model_validate({**_read_with_place(result), "attributes": attributes or {}})


def _read_citation(event: pb.ExecutionEvent) -> CitationAdded:
    return CitationAdded.model_validate(_read_with_place(event.citation_added))


def _read_with_place(message: pb.SearchResult | pb.CitationAdded) -> dict[str, object]:
    """Read the fields of a message with a place."""
    place = object_from_proto(optional(message, "place"), "place")
    return {**scalar_fields(message), "place": place, "other_names": tuple(message.other_names)}


def _usage_from_proto(usage: pb.Usage) -> Usage:
    return Usage.model_validate(scalar_fields(usage))


def _read_call_finished(event: pb.ExecutionEvent) -> ModelCallFinished:
    finished = event.model_call_finished
    return ModelCallFinished(
        call=finished.call,
        finish_reason=look_up(REASON_FROM_PROTO, finished.finish_reason, "model_call_finished.finish_reason"),
        usage=_usage_from_proto(finished.usage),
        cost=Cost.model_validate(scalar_fields(finished.cost)) if finished.HasField("cost") else None,
        left_out=tuple(finished.left_out),
        cache_diagnosis=finished.cache_diagnosis,
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
        finish_reason=look_up(REASON_FROM_PROTO, finished.finish_reason, "turn_finished.finish_reason"),
        usage=_usage_from_proto(finished.usage),
    )


def _read_turn_handed_back(event: pb.ExecutionEvent) -> TurnHandedBack:
    handed = event.turn_handed_back
    return TurnHandedBack(prompt_tokens=handed.prompt_tokens, usage=_usage_from_proto(handed.usage))


def _read_turn_failed(event: pb.ExecutionEvent) -> TurnFailed:
    failed = event.turn_failed
    require(failed.HasField("error"), "turn_failed.error")
    return TurnFailed(error=report_from_proto(failed.error), usage=_usage_from_proto(failed.usage))


def _read_plain(kind: type[PlainEvent], event: pb.ExecutionEvent) -> PlainEvent:
    return kind.model_validate(scalar_fields(getattr(event, kind.model_fields["type"].default)))


READERS: dict[str, Callable[[pb.ExecutionEvent], ExecutionEvent]] = {
    "reasoning_delta": lambda event: ReasoningDelta(text=event.reasoning_delta),
    "refusal_delta": lambda event: RefusalDelta(text=event.refusal_delta),
    "text_logprobs": lambda event: TextLogprobs(tokens=event.text_logprobs),
    "model_call_finished": _read_call_finished,
    "search_finished": _read_search_finished,
    "citation_added": _read_citation,
    "messages_added": _read_messages_added,
    "turn_finished": _read_turn_finished,
    "turn_handed_back": _read_turn_handed_back,
    "turn_failed": _read_turn_failed,
    **{kind.model_fields["type"].default: partial(_read_plain, kind) for kind in get_args(PlainEvent)},
}
