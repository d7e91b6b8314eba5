"""How a command ends: its exit codes, and errors that say what mends them."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of all commands; docs/cli.md promises them to scripts."""

    DONE = 0
    PARTLY_FAILED = 1
    WRONG_USE = 2
    UNREACHABLE = 3
    NOT_ALLOWED = 4
    NOT_FOUND = 5
    SERVER_FAILED = 6
    INTERRUPTED = 130


class CommandFailed(Exception):
    """A command cannot go on; `mend` says what to do about it."""

    def __init__(self, message: str, exit_code: ExitCode, mend: str = ""):
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
        self.mend = mend


class RequestRefused(CommandFailed):
    """The backend has answered a request with an error."""

    def __init__(self, status: int, message: str, mend: str = "", kind: str = ""):
        super().__init__(message, _exit_code_of(status), mend)
        self.status = status
        self.kind = kind


def _exit_code_of(status: int) -> ExitCode:
    match status:
        case 401 | 403:
            return ExitCode.NOT_ALLOWED
        case 404:
            return ExitCode.NOT_FOUND
        case _ if status < 500 and status != 429:
            return ExitCode.WRONG_USE
        case _:
            return ExitCode.SERVER_FAILED
