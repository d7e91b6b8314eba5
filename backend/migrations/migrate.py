"""Bring a database to the newest schema.

An empty database is given the newest tables at once
(https://alembic.sqlalchemy.org/en/latest/cookbook.html#building-an-up-to-date-database-from-scratch); a test holds
them against what all upgrades together make.
"""

from pathlib import Path

from sqlalchemy import Connection, text

from backend.foundation.sql.database import Database
from backend.knowledge.sql.tables import SEARCH_TABLES
from backend.migrations.chosen import upgrade
from backend.migrations.tables import metadata

HEAD = "head"
_VERSIONS = Path(__file__).parent / "versions"

# The key of the advisory lock: any number, but the same in every replica.
_ADVISORY_LOCK = 7_205_759_403_792_793

# Alembic's own table.
_FIND_REVISION = text("SELECT version_num FROM alembic_version")
_MAKE_VERSION_TABLE = text("""
    CREATE TABLE alembic_version (
        version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
    )
""")
_SET_REVISION = text("INSERT INTO alembic_version (version_num) VALUES (:revision)")


async def migrate(database: Database, revision: str = HEAD) -> None:
    """Upgrade in one transaction; of several processes that try at once, one works and the others wait."""

    def work(connection: Connection) -> None:
        if database.dialect == "postgresql":
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        if revision == HEAD and not connection.dialect.get_table_names(connection):
            _create(connection)
        elif revision != HEAD or not _is_newest(connection):
            upgrade(connection, revision)

    if revision != HEAD or not await database.read(_is_newest):
        await database.write(work, timeout_seconds=None)


def newest_revision() -> str:
    """Return the number with which the name of the newest script begins."""
    return max(path.stem.partition("_")[0] for path in _VERSIONS.glob("[0-9]*.py"))


def _is_newest(connection: Connection) -> bool:
    if not connection.dialect.has_table(connection, "alembic_version"):
        return False
    return connection.execute(_FIND_REVISION).scalars().all() == [newest_revision()]


def _create(connection: Connection) -> None:
    metadata.create_all(connection, checkfirst=False)
    for statement in SEARCH_TABLES[connection.dialect.name]:
        connection.execute(text(statement))
    connection.execute(_MAKE_VERSION_TABLE)
    connection.execute(_SET_REVISION, {"revision": newest_revision()})
