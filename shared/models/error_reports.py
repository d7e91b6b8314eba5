"""Errors as values that are reported, stored and sent, and back."""

from collections.abc import Iterator

from shared.errors import BallastError, InternalError
from shared.models.events import ErrorReport


def report_of(error: BallastError) -> ErrorReport:
    """Return what may be shown and stored of an error."""
    return ErrorReport(
        type=type(error).__name__,
        code=error.code,
        message=error.message,
        param=error.param,
        retryable=error.retryable,
    )


def error_of(report: ErrorReport) -> BallastError:
    """Make the error again; a class that is not ours becomes `InternalError`."""
    found = next((cls for cls in _tree(BallastError) if cls.__name__ == report.type), InternalError)
    return found(report.message, param=report.param)


def _tree(root: type[BallastError]) -> Iterator[type[BallastError]]:
    yield root
    for child in root.__subclasses__():
        yield from _tree(child)
