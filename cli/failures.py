"""Errors of commands, which say what mends them."""

from collections.abc import Sequence

from cli.advice import BY_EXIT_CODE, ExitCode, advice_on


class CommandFailed(Exception):
    """A command cannot go on; `mend` says what to do about it, by the kind of the error where nobody has said it."""

    def __init__(self, message: str, exit_code: ExitCode, mend: str = "", *, kinds: Sequence[str] = (), path: str = ""):
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
        self.mend = mend or advice_on(kinds, path) or BY_EXIT_CODE[exit_code]


class RequestRefused(CommandFailed):
    """The backend has answered a request with an error, whose `type` and `code` are its kinds."""

    def __init__(self, status: int, message: str, *, kinds: Sequence[str] = (), path: str = ""):
        super().__init__(message, _exit_code_of(status), kinds=kinds, path=path)
        self.status = status
        self.kinds = kinds


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
