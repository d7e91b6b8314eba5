"""`python -m tests.leaks.loud backend|chat_shell`: the service with every logger at debug level.

A member may see all of a base, and no refusals pause them: what a model is shown, and what of its reply is released,
would depend on which of these searches came first.

Quiet are only the database's own libraries, which print the rows that they read (those are the excluded tables), and
the parser of Markdown, which counts lines.
"""

import importlib
import logging
import os
import sys
from types import ModuleType

import uvloop

from backend.restricted.domain import restricted_budget
from shared.environment import read_settings
from shared.telemetry import QUIET_LIBRARIES, configure_logging
from tests.leaks.pair import NEVER_OVER

KEPT_QUIET = ("sqlalchemy", "aiosqlite", "markdown_it")


def main(app: ModuleType, settings: ModuleType) -> None:
    configure_logging(logging.DEBUG)
    logging.getLogger().setLevel(logging.DEBUG)
    for name in QUIET_LIBRARIES:
        logging.getLogger(name).setLevel(logging.DEBUG)
    for name in KEPT_QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    restricted_budget.MAX_CHUNK_SHARE_PERCENT = 100
    restricted_budget.REFUSALS_PER_PAUSE = NEVER_OVER
    read = read_settings(settings.Settings, os.environ)
    uvloop.run(app.serve(read, os.environ) if app.__name__ == "chat_shell.app" else app.serve(read))


if __name__ == "__main__":
    # both services name the same metrics: only one of them fits into a program
    service = sys.argv[1]
    main(importlib.import_module(f"{service}.app"), importlib.import_module(f"{service}.settings"))
