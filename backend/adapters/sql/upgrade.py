"""Alembic at work; `python -m backend.adapters.sql.upgrade` upgrades the database whose address it is told."""

import asyncio
import sys
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from backend.adapters.sql.database import Database, open_database

SCRIPTS = Path(__file__).parent / "migrations"

# Any number will do, so long as every replica takes the same one.
_ADVISORY_LOCK = 7_205_759_403_792_793


async def upgrade(database: Database, revision: str) -> None:
    """Upgrade in one transaction; any number of processes may try at once, one works and the others wait."""

    def work(connection: Connection) -> None:
        if database.dialect == "postgresql":
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
        command.upgrade(config, revision)

    await database.write(work, timeout_seconds=None)


async def main(url: str) -> None:
    """Upgrade to the newest schema."""
    database = open_database(url)
    try:
        await upgrade(database, "head")
    finally:
        await database.close()


if __name__ == "__main__":
    asyncio.run(main(sys.stdin.read()))
