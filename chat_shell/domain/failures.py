"""Errors as a turn reports them."""

from shared.errors import BallastError
from shared.models.events import ErrorReport


def report_of(error: BallastError) -> ErrorReport:
    """Describe an error to those who read the stream."""
    return ErrorReport(
        type=type(error).__name__,
        code=error.code,
        message=error.message,
        param=error.param,
        retryable=error.retryable,
    )
