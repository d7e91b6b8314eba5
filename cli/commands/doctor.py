"""`ballast doctor`: find what is broken, and say what mends it."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping
from dataclasses import asdict
from importlib.util import find_spec

import click

from cli.advice import ExitCode
from cli.api import Api
from cli.diagnosis import Diagnosis
from cli.failures import CommandFailed
from cli.running import Run, runs, with_our_packages
from cli.terminal import say_count
from shared.checked_parts import CheckedPart, read_checked_part
from shared.clock import SystemClock
from shared.setting_names import OF_CALLERS


@click.command()
@click.option("--no-model", is_flag=True, help="Do not ask the model, which may cost a little.")
@runs
async def doctor(run: Run, *, no_model: bool) -> None:
    """Look at everything that an answer needs, and say what is broken and what to do.

    The backend is looked at from outside. Where variables that begin with BACKEND_ or CHAT_SHELL_ are set, the settings
    of these services are looked at, too, with the database, Redis and all else that they name.
    """
    faults = 0
    async for part in _parts(run, asks_model=not no_model):
        faults += not part.is_well
        _show(run, part)
    if faults:
        message = f"{say_count(faults, 'part is', 'parts are')} broken."
        raise CommandFailed(message, ExitCode.PARTLY_FAILED)


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


_PREFIXES: Mapping[str, str] = {"backend": "BACKEND_", "chat_shell": "CHAT_SHELL_"}
_SECONDS = 60.0


def services_beside(environ: Mapping[str, str]) -> list[str]:
    """Return the services that are installed here and for which there are settings."""
    return [
        service
        for service, prefix in _PREFIXES.items()
        if any(name.startswith(prefix) for name in environ.keys() - OF_CALLERS) and find_spec(service) is not None
    ]


async def parts_beside(service: str, environ: Mapping[str, str]) -> AsyncGenerator[CheckedPart]:
    """Yield what a service finds out about itself, in a child that ends with this."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", service, "check",
        env=with_our_packages(environ),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(_SECONDS):
            out, err = await child.communicate()
    except TimeoutError:
        yield CheckedPart(service, False, f"Its check takes longer than {_SECONDS:.0f} s.", "see its addresses")
        return
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    found = [part for line in out.decode(errors="replace").splitlines() if (part := read_checked_part(line))]
    for part in found:
        yield part
    if not found:
        last = (err.decode(errors="replace").strip().splitlines() or ["nothing"])[-1]
        yield CheckedPart(service, False, f"Its check ended: {last}", "install it anew")
