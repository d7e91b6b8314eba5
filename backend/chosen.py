"""The commands of the backend, which is imported when one of them is chosen, behind what prepares the process."""

from collections.abc import Callable, Coroutine, Mapping, Sequence

from shared.checked_parts import print_parts
from shared.environment import read_settings

Command = Callable[[], Coroutine[None, None, None]]
"""Reads the settings, and returns what is to be run.

Raises:
    WrongSetting: a setting is wrong.
"""


def choose_command(arguments: Sequence[str], environ: Mapping[str, str]) -> Command | None:
    """Return the command that the arguments of the process name; None where they name none."""
    from backend.app import serve
    from backend.cells.domain import MoveOrder
    from backend.check import check_parts
    from backend.move_tenant import move_tenant
    from backend.reindex import reindex_database
    from backend.reread import reread_documents
    from backend.schema import downgrade_database, migrate_database
    from backend.settings import DatabaseSettings, ReadingSettings, Settings

    match list(arguments):
        case [] | ["serve"]:
            return lambda: serve(read_settings(Settings, environ))
        case ["check"]:
            return lambda: print_parts(check_parts(environ))
        case ["reread"]:
            return lambda: reread_documents(read_settings(ReadingSettings, environ))
        case ["migrate" | "reindex" as name]:
            command = migrate_database if name == "migrate" else reindex_database
            return lambda: command(read_settings(DatabaseSettings, environ))
        case ["move-tenant", *rest] if (order := MoveOrder.parse(rest)) is not None:
            return lambda: move_tenant(read_settings(DatabaseSettings, environ), order)
        case ["downgrade", revision]:
            return lambda: downgrade_database(read_settings(DatabaseSettings, environ), revision)
        case _:
            return None
