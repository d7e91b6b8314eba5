"""The table that maps errors to HTTP statuses, and error responses in OpenAI's format."""

from collections.abc import Mapping
from math import ceil

import orjson
from starlette.responses import Response

from shared import errors
from shared.models.error_reports import report_of

STATUS_OF: Mapping[type[errors.BallastError], int] = {
    errors.InvalidRequest: 400,
    errors.PayloadTooLarge: 413,
    errors.Unauthenticated: 401,
    errors.PermissionDenied: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.MethodNotAllowed: 405,
    errors.TooManyRequests: 429,
    errors.Unavailable: 503,
    errors.DeadlineExceeded: 504,
    errors.CorruptRecord: 500,
    errors.InternalError: 500,
    errors.ModelError: 502,
    errors.ModelRateLimited: 429,
    errors.ModelRequestRejected: 400,
}

RETRY_AFTER = "1"
"""The seconds to wait where the error itself does not say it."""


def http_status(error: errors.BallastError) -> int:
    """Return the status of the error's class, or of its nearest ancestor in the table."""
    return next((STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF), 500)


def error_response(error: errors.BallastError) -> Response:
    """Describe an error; `type` is its class, so that the other service can raise it again."""
    report = report_of(error)
    headers = {"www-authenticate": "Bearer"} if isinstance(error, errors.Unauthenticated) else {}
    status = http_status(error)
    if error.retry_after_seconds is not None:
        headers["retry-after"] = str(ceil(error.retry_after_seconds))
    elif status in (429, 503):
        headers["retry-after"] = RETRY_AFTER
    return Response(
        orjson.dumps({"error": report.model_dump(include={"message", "type", "param", "code"})}),
        status_code=status,
        headers=headers,
        media_type="application/json",
    )
