"""`python -m chat_shell`: run the service with settings from the environment."""

import os
import sys

import uvloop

from chat_shell.app import serve
from chat_shell.settings import Settings
from shared.environment import WrongSetting, read_settings
from shared.telemetry import configure_logging


def main() -> int:
    """Serve until told to stop; 0 after a clean stop, 2 for a wrong setting."""
    configure_logging()
    try:
        settings = read_settings(Settings, os.environ)
        uvloop.run(serve(settings, os.environ))
    except WrongSetting as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
