"""Parts of all commands: options, the connection in the context of click, and one event loop."""

import asyncio
import shutil
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TypeVar

import click

from cli.connection import Connection
from cli.exit_codes import ExitCode
from cli.failures import CommandFailed
from cli.terminal import Terminal

PROGRAM = "ballast"
Command = TypeVar("Command", bound=Callable[..., None])

json_option = click.option("--json", "is_json", is_flag=True, help="Write JSON to standard output, and nothing else.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask whether you are sure.")


class Run:
    """One run of a command."""

    def __init__(self, connection: Connection, *, is_json: bool):
        self.connection = connection
        self.terminal = Terminal(is_json=is_json)

    def to_its_end(self, work: Coroutine[None, None, None]) -> None:
        """Run a command; Ctrl-C cancels it."""
        asyncio.run(work)


def run_of(context: click.Context, *, is_json: bool) -> Run:
    """Return the run of a command in this context."""
    connection = context.find_object(Connection)
    if connection is None:
        raise CommandFailed("The command has not been started by `ballast`.", ExitCode.WRONG_USE)
    return Run(connection, is_json=is_json)


def called_as() -> str:
    """Return how a user types this command."""
    return command_name(sys.argv[0], shutil.which(PROGRAM))


def command_name(typed: str, found: str | None) -> str:
    """Return the name of the command where a shell has found it by that; else the path by which it was called."""
    return typed if Path(typed).name == PROGRAM and found is None else PROGRAM


def make_sure(question: str, *, yes: bool) -> None:
    """Ask before something is deleted.

    Raises:
        CommandFailed: nobody can be asked.
        click.Abort: the answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandFailed("Nobody can be asked here whether this is meant.", ExitCode.WRONG_USE, "add --yes")
    click.confirm(question, abort=True, err=True)
