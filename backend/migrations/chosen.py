"""Upgrades by alembic, which is imported only where there is something to upgrade.

Alembic takes more memory than any other library of this service, and nearly every start finds nothing to upgrade.
"""

from pathlib import Path

from sqlalchemy import Connection

SCRIPTS = Path(__file__).parent


def upgrade(connection: Connection, revision: str) -> None:
    """Run the scripts up to a revision, or to `head`, in the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    command.upgrade(config, revision)
