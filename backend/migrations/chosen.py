"""Upgrades by alembic, which is imported only where there is something to upgrade.

Alembic takes more memory than any other library of this service, and nearly every start finds nothing to upgrade.
"""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection

SCRIPTS = Path(__file__).parent


def upgrade(connection: Connection, version_table: str, revision: str) -> None:
    """Run the scripts up to a revision, or to `head`, in the caller's transaction."""
    from alembic import command

    command.upgrade(_configure(connection, version_table), revision)


def downgrade(connection: Connection, version_table: str, revision: str) -> None:
    """Run the scripts back to a revision, or to `base`, in the caller's transaction."""
    from alembic import command

    command.downgrade(_configure(connection, version_table), revision)


def _configure(connection: Connection, version_table: str) -> Any:
    from alembic.config import Config

    config = Config(attributes={"connection": connection, "version_table": version_table})
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return config
