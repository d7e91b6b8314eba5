"""`ballast doctor`: find what is broken, and say what mends it."""

from collections.abc import AsyncGenerator
from dataclasses import asdict

import click

from cli.api import Api
from cli.beside import parts_beside, services_beside
from cli.diagnosis import Diagnosis
from cli.exit_codes import ExitCode
from cli.failures import CommandFailed
from cli.running import Run, json_option, run_of
from shared.checked_parts import CheckedPart
from shared.clock import SystemClock


@click.command()
@click.option("--no-model", is_flag=True, help="Do not ask the model, which may cost a little.")
@json_option
@click.pass_context
def doctor(context: click.Context, *, no_model: bool, is_json: bool) -> None:
    """Look at everything that an answer needs, and say what is broken and what to do.

    The backend is looked at from outside. Where variables that begin with BACKEND_ or CHAT_SHELL_ are set, the settings
    of these services are looked at, too, with the database, Redis and all else that they name.
    """
    run = run_of(context, is_json=is_json)
    run.to_its_end(_examine(run, asks_model=not no_model))


async def _examine(run: Run, *, asks_model: bool) -> None:
    faults = 0
    async for part in _parts(run, asks_model=asks_model):
        faults += not part.is_well
        _show(run, part)
    if faults:
        raise CommandFailed(f"{faults} found that is not as it has to be.", ExitCode.PARTLY_FAILED)


async def _parts(run: Run, *, asks_model: bool) -> AsyncGenerator[CheckedPart]:
    for service in services_beside(run.connection.environ):
        async for part in parts_beside(service, run.connection.environ):
            yield part
    async with Api(run.connection) as api:
        async for part in Diagnosis(api, SystemClock(), asks_model=asks_model).parts():
            yield part


def _show(run: Run, part: CheckedPart) -> None:
    if run.terminal.is_json:
        run.terminal.json(asdict(part))
    elif part.is_well:
        run.terminal.line(f"ok      {part.part}: {part.found}")
    else:
        run.terminal.line(f"broken  {part.part}: {part.found}", "red")
        run.terminal.line(f"        What to do: {part.mend}")
