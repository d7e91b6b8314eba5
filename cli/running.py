"""Parts of all commands: options, the connection, one event loop, and how objects and lists of the API are shown."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import cast

import click

from cli.advice import ExitCode
from cli.answers import Answer
from cli.api import Api
from cli.connection import Connection
from cli.failures import CommandFailed
from cli.terminal import Terminal, cell

PROGRAM = "ballast"
Work = Coroutine[None, None, None]

yes_option = click.option("--yes", is_flag=True, help="Do not ask whether you are sure.")


class Run:
    """One run of a command."""

    def __init__(self, connection: Connection, *, is_json: bool):
        self.connection = connection
        self.terminal = Terminal(is_json=is_json)


def runs(command: Callable[..., Work]) -> Callable[..., None]:
    """Give a command its run and the option `--json`, and run the work that it returns; Ctrl-C cancels that."""

    @click.option("--json", "is_json", is_flag=True, help="Write JSON to standard output, and nothing else.")
    @click.pass_context
    @wraps(command)
    def run(context: click.Context, *, is_json: bool, **options: object) -> None:
        connection = context.find_object(Connection)
        if connection is None:
            raise CommandFailed("The command has not been started by `ballast`.", ExitCode.WRONG_USE)
        asyncio.run(command(Run(connection, is_json=is_json), **options))

    return run


def name_command() -> str:
    """Return how a user types this command."""
    return command_name(sys.argv[0], shutil.which(PROGRAM))


def command_name(typed: str, found: str | None) -> str:
    """Return the name of the command where a shell has found it by that; else the path by which it was called."""
    return typed if Path(typed).name == PROGRAM and found is None else PROGRAM


def with_our_packages(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that finds the packages beside this command, in a clone too."""
    paths = (str(Path(__file__).resolve().parents[1]), environ.get("PYTHONPATH", ""))
    return {**environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


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


async def show_list(run: Run, items: AsyncIterator[Answer], columns: Sequence[str], at_most: int | None = None) -> None:
    """Show the items of a list, all of them or the first ones."""
    found: list[Answer] = []
    async for item in items:
        if at_most is not None and len(found) == at_most:
            break
        found.append(item)
    if run.terminal.is_json:
        run.terminal.json({"object": "list", "data": found})
    else:
        run.terminal.table(found, columns)


def show_one(run: Run, shown: Answer) -> None:
    """Show an object, a line for each member."""
    if run.terminal.is_json:
        run.terminal.json(shown)
        return
    for name, value in shown.items():
        if name != "object" and value not in (None, "", [], {}):
            run.terminal.line(f"{name.replace('_', ' ')}: {cell(name, _drop_empty(value))}")


def _drop_empty(value: object) -> object:
    """Leave out the members of an object that say nothing."""
    if not isinstance(value, dict):
        return value
    return {name: each for name, each in cast(Answer, value).items() if each is not None}


async def call_and_show(run: Run, method: str, path: str, body: Answer | None = None) -> None:
    """Call the API and show its answer."""
    async with Api(run.connection) as api:
        show_one(run, await api.call(method, path, body))


async def list_and_show(run: Run, path: str, columns: Sequence[str]) -> None:
    """Show a list of the API."""
    async with Api(run.connection) as api:
        await show_list(run, api.items(path), columns)
