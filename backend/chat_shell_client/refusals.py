"""Translating errors that chat_shell reports to our own error classes."""

from shared.errors import (
    BallastError,
    ChatShellUnavailable,
    Draining,
    InternalError,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from shared.models.error_reports import find_error_class
from shared.models.events import ErrorReport

BROKEN_OFF = "The model runner broke off before the end of the turn."
UNREACHABLE = "The model runner cannot be reached."
REFUSES_US = "The model runner refuses this service's token."
TOO_OLD = "The model runner is of an earlier release that cannot run a tool without a model: upgrade chat_shell."
SILENT = "The model runner has stopped answering."
NO_ANSWER = "The model runner did not answer in time."
SHUTS_DOWN = "The model runner is shutting down."
TOO_LARGE = "The turn is too large for the model runner."
TOO_LATE = "The turn took longer than it may."


class ReplicaDraining(ChatShellUnavailable):
    """A replica that shuts down refused a call of which nothing has run; `FailoverChatShell` makes it again."""


def error_of_report(report: ErrorReport) -> BallastError:
    """Return the error to raise for what chat_shell reports.

    A refused service token is not the user's fault, and a replica that is shutting down counts as unreachable.
    """
    kind = find_error_class(report.type)
    if issubclass(kind, Unauthenticated | PermissionDenied):
        return InternalError(REFUSES_US)
    if issubclass(kind, Draining):
        return ReplicaDraining(report.message)
    if issubclass(kind, Unavailable):
        return ChatShellUnavailable(report.message)
    return kind(report.message, param=report.param)
