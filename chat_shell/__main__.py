"""`python -m chat_shell [check]`: run the service with settings from the environment, or look at these."""

import os
import sys
from collections.abc import Sequence

import uvloop

from chat_shell.chosen import prepare_check, prepare_serving
from chat_shell.settings import Settings
from shared.chosen import let_grpc_ignore_children, tracing
from shared.environment import WrongSetting, read_settings
from shared.memory import no_looks_for_cycles
from shared.setting_names import SERVICE_LINKS_HINT, find_injected
from shared.telemetry import configure_logging, get_logger

log = get_logger("chat_shell")


USAGE = "usage: python -m chat_shell [check]\n"


def main(arguments: Sequence[str]) -> int:
    """Serve until told to stop; 0 after a clean end, 2 for a wrong setting or argument."""
    configure_logging()
    let_grpc_ignore_children(os.environ)
    if list(arguments) not in ([], ["check"]):
        sys.stderr.write(USAGE)
        return 2
    try:
        if arguments:
            uvloop.run(prepare_check(os.environ))
            return 0
        settings = read_settings(Settings, os.environ)
        if injected := find_injected(Settings.prefix, os.environ):
            log.warning("Not ours and ignored", variables=injected, hint=SERVICE_LINKS_HINT)
        with tracing("ballast-chat-shell", os.environ):
            with no_looks_for_cycles():
                running = prepare_serving(settings, os.environ)
            uvloop.run(running)
    except WrongSetting as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
