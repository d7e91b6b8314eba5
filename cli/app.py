"""The command `ballast` with all its commands, and the one place where errors become messages and exit codes."""

import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import httpx2

from cli.advice import LOOK_CLOSER, LOOKED_AT_BY_DOCTOR, ExitCode
from cli.commands.add import add
from cli.commands.agents import agents
from cli.commands.ask import ask
from cli.commands.audit import audit
from cli.commands.bases import bases
from cli.commands.cache import cache
from cli.commands.completion import completion
from cli.commands.demo import env, up
from cli.commands.doctor import doctor
from cli.commands.groups import groups
from cli.commands.keys import keys
from cli.commands.members import members
from cli.commands.prompts import prompts
from cli.commands.receipts import receipts
from cli.connection import connection_of, state_folder
from cli.failures import CommandFailed
from cli.running import PROGRAM, name_command
from cli.terminal import Terminal
from shared.version import VERSION


@click.version_option(VERSION, "--version", message="%(prog)s %(version)s")
@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def ballast() -> None:
    """Knowledge bases with answers that cite them.

    BALLAST_URL is the backend's address, BALLAST_KEY your key, BALLAST_BASE the base that is asked where none is named.
    Where none of them is set, those of a demo that was started in this folder hold.
    """


_OVER_THINGS = (agents, bases, groups, keys, members)
for command in (*_OVER_THINGS, add, ask, audit, cache, completion, doctor, env, prompts, receipts, up):
    ballast.add_command(command)


def run_command(
    arguments: Sequence[str], environ: Mapping[str, str], transport: httpx2.AsyncBaseTransport | None = None
) -> int:
    """Run a command and return its exit code; whatever goes wrong is one message on standard error.

    Raises:
        BrokenPipeError: nobody reads the results any more.
    """
    notes = Terminal(is_json=False)
    try:
        connection = connection_of(environ, transport)
        ended = ballast.main(list(arguments), PROGRAM, standalone_mode=False, obj=connection)
    except CommandFailed as failed:
        notes.note(failed.message, "red")
        mend = f"{failed.mend}; {LOOK_CLOSER}" if failed.exit_code in LOOKED_AT_BY_DOCTOR else failed.mend
        notes.note(f"What to do: {mend.replace(f'`{PROGRAM} ', f'`{name_command()} ')}")
        return failed.exit_code
    except click.ClickException as wrong:
        _tell_right_use(wrong, notes)
        return ExitCode.WRONG_USE
    except (KeyboardInterrupt, click.Abort):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        with _defect_log(environ) as log:
            log.exception("A command has a defect")
        notes.note(f"This command has a defect: {type(error).__name__}: {error}", "red")
        notes.note(f"What to do: report it with {defects_file(environ)}")
        return ExitCode.SERVER_FAILED
    return ended if isinstance(ended, int) else ExitCode.DONE


def _tell_right_use(wrong: click.ClickException, notes: Terminal) -> None:
    context = wrong.ctx if isinstance(wrong, click.UsageError) else None
    if context is not None:
        notes.note(context.get_usage())
    notes.note(wrong.format_message(), "red")
    command = context.command_path if context is not None else PROGRAM
    notes.note(f"What to do: `{command.replace(PROGRAM, name_command(), 1)} --help` shows how it is used")


def defects_file(environ: Mapping[str, str]) -> Path:
    """Return where the tracebacks of defects are kept, which no user has to read."""
    return state_folder(environ) / "defects.log"


@contextmanager
def _defect_log(environ: Mapping[str, str]) -> Generator[logging.Logger]:
    """Lend a log that writes to the file of defects, and nowhere else."""
    log = logging.getLogger("ballast")
    log.propagate = False
    file = defects_file(environ)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = logging.FileHandler(file, encoding="utf-8")
    except OSError:
        handler = logging.NullHandler()
    log.addHandler(handler)
    yield log
    log.removeHandler(handler)
    handler.close()
