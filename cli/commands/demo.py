"""`ballast up` and `ballast env`: the demo on this machine, and what other programs reach it by."""

import shlex
from pathlib import Path

import click

from cli.advice import ExitCode
from cli.connection import Connection
from cli.demo import FILE, TOLD_BY_DEMO, become_demo
from cli.failures import CommandFailed


@click.command()
@click.pass_obj
def up(connection: Connection) -> None:
    """Start both services with a demo in this folder; Ctrl-C stops them. Their data goes to ./var."""
    become_demo(connection.environ, Path.cwd())


@click.command()
@click.pass_obj
def env(connection: Connection) -> None:
    """Write exports of addresses and keys for other programs: eval "$(ballast env)".

    OPENAI_BASE_URL and OPENAI_API_KEY are those that OpenAI's clients read.
    """
    if not connection.key:
        message = f"There is no demo in this folder ({FILE}), and no BALLAST_KEY is set."
        raise CommandFailed(message, ExitCode.WRONG_USE, "start one here with `ballast up`, or set BALLAST_KEY")
    used = {"BALLAST_URL": connection.url, "BALLAST_KEY": connection.key, "BALLAST_BASE": ",".join(connection.bases)}
    others = {name: connection.environ.get(name, "") for name in TOLD_BY_DEMO}
    openai = {"OPENAI_BASE_URL": f"{connection.url}/v1", "OPENAI_API_KEY": connection.key}
    for name, value in {**used, **others, **openai}.items():
        if value:
            click.echo(f"export {name}={shlex.quote(value)}")
