"""`python -m backend [migrate]`: run the service, or bring its database up to date and end."""

import os
import sys

import uvloop

from backend.app import migrate_database, serve
from backend.settings import Settings
from shared.environment import WrongSetting, read_settings
from shared.telemetry import configure_logging

COMMANDS = {"serve": serve, "migrate": migrate_database}


def main(arguments: list[str]) -> int:
    """Run a command; 0 after a clean end, 2 for a wrong setting or command."""
    configure_logging()
    command = COMMANDS.get(arguments[0] if arguments else "serve")
    if command is None or len(arguments) > 1:
        sys.stderr.write("usage: python -m backend [serve|migrate]\n")
        return 2
    try:
        uvloop.run(command(read_settings(Settings, os.environ)))
    except WrongSetting as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
