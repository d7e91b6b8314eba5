"""`python -m backend [serve|migrate|downgrade <revision>]`: serve, or change the database's schema and end."""

import os
import sys
from collections.abc import Callable, Coroutine, Sequence

import structlog
import uvloop

from backend.app import downgrade_database, migrate_database, serve
from backend.settings import DatabaseSettings, Settings
from shared.environment import WrongSetting, read_settings
from shared.memory_arenas import limit_memory_arenas
from shared.setting_names import SERVICE_LINKS_HINT, injected_names
from shared.telemetry import configure_logging

log = structlog.get_logger("backend")
Command = Callable[[], Coroutine[None, None, None]]

MEMORY_ARENAS = 1
"""After ingest of 40,000 chunks and long searches, more arenas kept 24 MB that nobody used."""

USAGE = "usage: python -m backend [serve|migrate|downgrade <revision>]\n"


def main(arguments: Sequence[str]) -> int:
    """Run a command; 0 after a clean end, 2 for a wrong setting or command."""
    limit_memory_arenas(MEMORY_ARENAS)
    configure_logging()
    command = _command(arguments)
    if command is None:
        sys.stderr.write(USAGE)
        return 2
    try:
        running = command()
        if injected := injected_names(Settings.prefix, os.environ):
            log.warning("Not ours and ignored", variables=injected, hint=SERVICE_LINKS_HINT)
        uvloop.run(running)
    except WrongSetting as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 2
    return 0


def _command(arguments: Sequence[str]) -> Command | None:
    match list(arguments):
        case [] | ["serve"]:
            return lambda: serve(read_settings(Settings, os.environ))
        case ["migrate"]:
            return lambda: migrate_database(read_settings(DatabaseSettings, os.environ))
        case ["downgrade", revision]:
            return lambda: downgrade_database(read_settings(DatabaseSettings, os.environ), revision)
        case _:
            return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
