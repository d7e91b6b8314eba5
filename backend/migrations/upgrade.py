"""Upgrades by alembic."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

SCRIPTS = Path(__file__).parent


def upgrade(connection: Connection, revision: str) -> None:
    """Run the scripts up to a revision, or to `head`, in the caller's transaction."""
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    command.upgrade(config, revision)
