"""Convert errors to values that are reported, stored and sent, and back."""

from collections.abc import Iterator

from shared.errors import BallastError, InternalError
from shared.models.events import ErrorReport


def report_of(error: BallastError) -> ErrorReport:
    """Return the report of an error, which may be shown and stored."""
    return ErrorReport(
        type=type(error).__name__,
        code=error.code,
        message=error.message,
        param=error.param,
        retryable=error.retryable,
    )


def error_of(report: ErrorReport) -> BallastError:
    """Return the error that a report describes; where its class is unknown, an `InternalError`."""
    error = find_error_class(report.type)(report.message, param=report.param)
    error.code = report.code
    return error


def find_error_class(name: str) -> type[BallastError]:
    """Return the class of an error by its name, which stored reports have; `InternalError` where there is none."""
    return next((cls for cls in _error_classes(BallastError) if cls.__name__ == name), InternalError)


def _error_classes(root: type[BallastError]) -> Iterator[type[BallastError]]:
    yield root
    for child in root.__subclasses__():
        yield from _error_classes(child)
