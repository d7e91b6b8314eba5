"""The table that maps errors to gRPC statuses."""

from collections.abc import Mapping

from grpc import StatusCode

from shared import errors
from shared.models.error_reports import report_of
from shared.wire import report_to_proto

ERROR_TRAILER = "ballast-error-bin"
"""Holds an `execution.v1.ErrorReport`, because a status alone cannot name the class and the field."""

STATUS_OF: Mapping[type[errors.BallastError], StatusCode] = {
    errors.InvalidRequest: StatusCode.INVALID_ARGUMENT,
    errors.PayloadTooLarge: StatusCode.RESOURCE_EXHAUSTED,
    errors.Unauthenticated: StatusCode.UNAUTHENTICATED,
    errors.PermissionDenied: StatusCode.PERMISSION_DENIED,
    errors.NotFound: StatusCode.NOT_FOUND,
    errors.Conflict: StatusCode.ABORTED,
    errors.MethodNotAllowed: StatusCode.UNIMPLEMENTED,
    errors.TooManyRequests: StatusCode.RESOURCE_EXHAUSTED,
    errors.Unavailable: StatusCode.UNAVAILABLE,
    errors.DeadlineExceeded: StatusCode.DEADLINE_EXCEEDED,
    errors.CorruptRecord: StatusCode.DATA_LOSS,
    errors.InternalError: StatusCode.INTERNAL,
    errors.ModelError: StatusCode.INTERNAL,
    errors.ModelUnavailable: StatusCode.UNAVAILABLE,
    errors.ModelRateLimited: StatusCode.RESOURCE_EXHAUSTED,
    errors.ModelRequestRejected: StatusCode.INVALID_ARGUMENT,
}


def grpc_status(error: errors.BallastError) -> StatusCode:
    """Return the status of the error's class, or of its nearest ancestor in the table."""
    return next((STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF), StatusCode.UNKNOWN)


def trailers_of(error: errors.BallastError) -> tuple[tuple[str, bytes], ...]:
    """Return the metadata that carries the whole error."""
    return ((ERROR_TRAILER, report_to_proto(report_of(error)).SerializeToString()),)
