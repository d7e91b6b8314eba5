"""`python -m backend [serve|migrate|downgrade <revision>]`: serve, or change the database's schema and end."""

import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial

import structlog
import uvloop

from backend.app import downgrade_database, migrate_database, serve
from backend.settings import Settings
from shared.environment import WrongSetting, read_settings
from shared.setting_names import SERVICE_LINKS_HINT, injected_names
from shared.telemetry import configure_logging

log = structlog.get_logger("backend")
Command = Callable[[Settings], Coroutine[None, None, None]]

COMMANDS: dict[str, Command] = {"serve": serve, "migrate": migrate_database}
USAGE = "usage: python -m backend [serve|migrate|downgrade <revision>]\n"


def main(arguments: Sequence[str]) -> int:
    """Run a command; 0 after a clean end, 2 for a wrong setting or command."""
    configure_logging()
    command = _command(arguments)
    if command is None:
        sys.stderr.write(USAGE)
        return 2
    try:
        settings = read_settings(Settings, os.environ)
        if injected := injected_names(Settings.prefix, os.environ):
            log.warning("Not ours and ignored", variables=injected, hint=SERVICE_LINKS_HINT)
        uvloop.run(command(settings))
    except WrongSetting as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 2
    return 0


def _command(arguments: Sequence[str]) -> Command | None:
    match list(arguments):
        case []:
            return serve
        case ["downgrade", revision]:
            return partial(downgrade_database, revision=revision)
        case [name]:
            return COMMANDS.get(name)
        case _:
            return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
