"""`python -m backend [serve|check|migrate|reindex|reread|move-tenant …|downgrade …]`: serve, or what operators do."""

import os
import sys
from collections.abc import Sequence

import uvloop

from backend.chosen import choose_command
from backend.settings import Settings
from shared.chosen import let_grpc_ignore_children, tracing
from shared.environment import WrongSetting
from shared.memory import limit_memory_arenas, no_looks_for_cycles
from shared.setting_names import SERVICE_LINKS_HINT, find_injected
from shared.telemetry import configure_logging, get_logger

log = get_logger("backend")

MEMORY_ARENAS = 1
"""After ingest of 40,000 chunks and long searches, more arenas kept 24 MB that nobody used."""

COMMANDS = "serve|check|migrate|reindex|reread|downgrade <revision>|move-tenant <tenant> --to <cell>"
USAGE = f"usage: python -m backend [{COMMANDS}]\n"


def main(arguments: Sequence[str]) -> int:
    """Run a command; 0 after a clean end, 2 for a wrong setting or command."""
    limit_memory_arenas(MEMORY_ARENAS)
    let_grpc_ignore_children(os.environ)
    configure_logging()
    with no_looks_for_cycles():
        command = choose_command(arguments, os.environ)
    if command is None:
        sys.stderr.write(USAGE)
        return 2
    try:
        with tracing("ballast-backend", os.environ):
            running = command()
            if injected := find_injected(Settings.prefix, os.environ):
                log.warning("Not ours and ignored", variables=injected, hint=SERVICE_LINKS_HINT)
            uvloop.run(running)
    except WrongSetting as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
