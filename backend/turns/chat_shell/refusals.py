"""What chat_shell answers in place of a turn, as errors of our own tree."""

from collections.abc import Iterator

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from protos.execution.v1 import events_pb2
from shared.errors import (
    BallastError,
    ChatShellUnavailable,
    DeadlineExceeded,
    InternalError,
    PayloadTooLarge,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from shared.models.events import ErrorReport
from shared.wire import report_from_proto

ERROR_TRAILER = "ballast-error-bin"

BROKEN_OFF = "The model runner broke off before the end of the turn."
UNREACHABLE = "The model runner cannot be reached."
REFUSES_US = "The model runner refuses this service's token."
TOO_LATE = "The turn took longer than it may."


def _family(kind: type[BallastError]) -> Iterator[type[BallastError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _family(child)


KINDS = {kind.__name__: kind for kind in _family(BallastError)}

BY_STATUS: dict[grpc.StatusCode, BallastError] = {
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded(TOO_LATE),
    grpc.StatusCode.RESOURCE_EXHAUSTED: PayloadTooLarge("The turn is too large for the model runner."),
    grpc.StatusCode.UNAUTHENTICATED: InternalError(REFUSES_US),
}


def error_of_report(report: ErrorReport) -> BallastError:
    """Raise-ready, what chat_shell reports.

    A refusal of our service token is no fault of the user, and a drained replica is one that is away.
    """
    kind = KINDS.get(report.type, InternalError)
    if issubclass(kind, Unauthenticated | PermissionDenied):
        return InternalError(REFUSES_US)
    if issubclass(kind, Unavailable):
        return ChatShellUnavailable(report.message)
    return kind(report.message, param=report.param)


def error_of_call(error: grpc.aio.AioRpcError, *, begun: bool) -> BallastError:
    """Translate a call that failed; without a report of chat_shell's the status has to do."""
    report = _trailing_report(error)
    if report is not None:
        return error_of_report(report)
    known = BY_STATUS.get(error.code())
    if known is None:
        return ChatShellUnavailable(BROKEN_OFF if begun else UNREACHABLE)
    return type(known)(known.message)


def _trailing_report(error: grpc.aio.AioRpcError) -> ErrorReport | None:
    for key, value in error.trailing_metadata() or ():
        if key == ERROR_TRAILER and isinstance(value, bytes):
            try:
                return report_from_proto(events_pb2.ErrorReport.FromString(value))
            except DecodeError:
                return None
    return None
