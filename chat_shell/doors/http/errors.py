"""The table that maps errors to HTTP statuses, and error responses in OpenAI's format."""

from collections.abc import Mapping
from math import ceil

import orjson
from starlette.responses import Response

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
    NotFound,
    PayloadTooLarge,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from shared.models.error_reports import report_of

STATUS_OF: Mapping[type[BallastError], int] = {
    InvalidRequest: 400,
    PayloadTooLarge: 413,
    Unauthenticated: 401,
    PermissionDenied: 403,
    NotFound: 404,
    Conflict: 409,
    MethodNotAllowed: 405,
    Unavailable: 503,
    DeadlineExceeded: 504,
    CorruptRecord: 500,
    InternalError: 500,
    ModelError: 502,
    ModelRateLimited: 429,
    ModelRequestRejected: 400,
}


def http_status(error: BallastError) -> int:
    """Return the status of the error's class, or of its nearest ancestor in the table."""
    return next((STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF), 500)


def error_response(error: BallastError) -> Response:
    """Describe an error; `type` is its class, so that the other service can raise it again."""
    report = report_of(error)
    headers = {"www-authenticate": "Bearer"} if isinstance(error, Unauthenticated) else {}
    if error.retry_after_seconds is not None:
        headers["retry-after"] = str(ceil(error.retry_after_seconds))
    return Response(
        orjson.dumps({"error": report.model_dump(include={"message", "type", "param", "code"})}),
        status_code=http_status(error),
        headers=headers,
        media_type="application/json",
    )
