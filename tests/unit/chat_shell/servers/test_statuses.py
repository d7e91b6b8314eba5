from collections.abc import Iterator

import grpc
import grpc.aio
import pytest

from backend.chat_shell_client.grpc_client import ERROR_TRAILER, error_of_call
from backend.chat_shell_client.refusals import ReplicaDraining, error_of_report
from chat_shell.servers.grpc import statuses as grpc_statuses
from chat_shell.servers.http import errors as http_errors
from shared.errors import (
    BallastError,
    ChatShellUnavailable,
    DeadlineExceeded,
    Draining,
    InternalError,
    PayloadTooLarge,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from shared.models.error_reports import report_of
from shared.models.events import ErrorReport


def family(kind: type[BallastError]) -> Iterator[type[BallastError]]:
    for child in kind.__subclasses__():
        yield child
        yield from family(child)


EVERY_ERROR = sorted(
    (kind for kind in set(family(BallastError)) if kind.__module__ == BallastError.__module__),
    key=lambda kind: kind.__name__,
)
"""Those that both services know; which others there are depends on what has been imported."""


@pytest.mark.parametrize("kind", EVERY_ERROR)
def test_every_error_has_a_status(kind: type[BallastError]):
    assert set(kind.__mro__) & set(grpc_statuses.STATUS_OF)
    assert set(kind.__mro__) & set(http_errors.STATUS_OF)
    assert grpc_statuses.grpc_status(kind("x")) is not grpc.StatusCode.OK
    assert 400 <= http_errors.http_status(kind("x")) < 600


@pytest.mark.parametrize("kind", EVERY_ERROR)
def test_every_error_is_raised_again_on_the_other_side(kind: type[BallastError]):
    error = error_of_report(report_of(kind("words", param="input")))
    if issubclass(kind, Unauthenticated | PermissionDenied):
        assert type(error) is InternalError
    elif issubclass(kind, Unavailable):
        assert type(error) is (ReplicaDraining if kind is Draining else ChatShellUnavailable)
    else:
        assert (type(error), error.message, error.param) == (kind, "words", "input")


def test_an_error_of_a_later_release_is_an_internal_one():
    report = ErrorReport(type="NotYetInvented", code="x", message="words", param=None, retryable=False)
    error = error_of_report(report)
    assert (type(error), error.message) == (InternalError, "words")


def failed_call(code: grpc.StatusCode, *trailers: tuple[str, bytes]) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailers))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, ChatShellUnavailable),
        (grpc.StatusCode.INTERNAL, ChatShellUnavailable),
        (grpc.StatusCode.CANCELLED, ChatShellUnavailable),
        (grpc.StatusCode.DEADLINE_EXCEEDED, DeadlineExceeded),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, PayloadTooLarge),
        (grpc.StatusCode.UNAUTHENTICATED, InternalError),
    ],
)
def test_a_status_without_a_report_has_to_do(code: grpc.StatusCode, kind: type[BallastError]):
    assert type(error_of_call(failed_call(code), begun=False)) is kind


def test_a_report_that_is_garbage_is_ignored():
    error = error_of_call(failed_call(grpc.StatusCode.NOT_FOUND, (ERROR_TRAILER, b"\xff")), begun=True)
    assert type(error) is ChatShellUnavailable


def test_both_sides_name_the_trailer_alike():
    assert grpc_statuses.ERROR_TRAILER == ERROR_TRAILER
