"""The exit codes of all commands."""

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command has ended; docs/cli.md promises these numbers to scripts."""

    DONE = 0
    PARTLY_FAILED = 1
    WRONG_USE = 2
    UNREACHABLE = 3
    NOT_ALLOWED = 4
    NOT_FOUND = 5
    SERVER_FAILED = 6
    INTERRUPTED = 130
