"""The table that maps errors to gRPC statuses."""

from collections.abc import Mapping

from grpc import StatusCode

from shared.errors import (
    BallastError,
    Conflict,
    CorruptRecord,
    DeadlineExceeded,
    InternalError,
    InvalidRequest,
    MethodNotAllowed,
    ModelError,
    ModelRateLimited,
    ModelRequestRejected,
    ModelUnavailable,
    NotFound,
    PayloadTooLarge,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from shared.models.error_reports import report_of
from shared.wire import report_to_proto

ERROR_TRAILER = "ballast-error-bin"
"""Holds an `execution.v1.ErrorReport`, because a status alone cannot name the class and the field."""

STATUS_OF: Mapping[type[BallastError], StatusCode] = {
    InvalidRequest: StatusCode.INVALID_ARGUMENT,
    PayloadTooLarge: StatusCode.RESOURCE_EXHAUSTED,
    Unauthenticated: StatusCode.UNAUTHENTICATED,
    PermissionDenied: StatusCode.PERMISSION_DENIED,
    NotFound: StatusCode.NOT_FOUND,
    Conflict: StatusCode.ABORTED,
    MethodNotAllowed: StatusCode.UNIMPLEMENTED,
    Unavailable: StatusCode.UNAVAILABLE,
    DeadlineExceeded: StatusCode.DEADLINE_EXCEEDED,
    CorruptRecord: StatusCode.DATA_LOSS,
    InternalError: StatusCode.INTERNAL,
    ModelError: StatusCode.INTERNAL,
    ModelUnavailable: StatusCode.UNAVAILABLE,
    ModelRateLimited: StatusCode.RESOURCE_EXHAUSTED,
    ModelRequestRejected: StatusCode.INVALID_ARGUMENT,
}


def grpc_status(error: BallastError) -> StatusCode:
    """Return the status of the error's class, or of its nearest ancestor in the table."""
    return next((STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF), StatusCode.UNKNOWN)


def trailers_of(error: BallastError) -> tuple[tuple[str, bytes], ...]:
    """Return the metadata that carries the whole error."""
    return ((ERROR_TRAILER, report_to_proto(report_of(error)).SerializeToString()),)
