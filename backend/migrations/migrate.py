"""Bring a database to the newest schema, or back to an earlier one.

An empty database is given the newest tables at once
(https://alembic.sqlalchemy.org/en/latest/cookbook.html#building-an-up-to-date-database-from-scratch); a test holds
them against what all upgrades together make.

Two tables of one row say where a database stands (docs/adr/0017): `schema_revision` names its revision, and
`alembic_version` the oldest revision whose code may run on it. The first release knows `alembic_version` alone and
starts only where it names the revision of that release, which is why the oldest revision stands there.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, text

from backend.foundation.sql.database import Database
from backend.migrations.chosen import downgrade, upgrade
from backend.migrations.compatibility import all_revisions, newest_revision, oldest_code_for
from backend.migrations.tables import metadata
from backend.search.sql.tables import SEARCH_TABLES, vector_space
from backend.search.sql.vector_schema import make_vector_table
from shared.environment import cause_of
from shared.errors import Unavailable

HEAD = "head"
BASE = "base"

# The key of the advisory lock: any number, but the same in every replica and release.
_ADVISORY_LOCK = 7_205_759_403_792_793

# A change of a table waits for the statements that use it, and all later ones wait behind the change. After this long
# it lets them pass, and is tried again.
_LOCK_WAIT = "2s"
_LOCK_NOT_GIVEN = "LockNotAvailableError"
_ATTEMPTS = 30
_PAUSE_SECONDS = 0.5

_REVISION, _OLDEST_CODE = "schema_revision", "alembic_version"


class UnknownSchema(ValueError):
    """The schema is too new for this code; the message is one line that names both revisions."""


@dataclass(frozen=True)
class Position:
    """Where a database stands: its revision, and the oldest one whose code may run on it; None in an empty one."""

    revision: str | None
    oldest_code: str | None


async def migrate(database: Database, revision: str = HEAD) -> None:
    """Upgrade in one transaction; of several processes that try at once, one works and the others wait.

    A schema that a newer release has expanded is left as it is.

    Raises:
        UnknownSchema: a newer release has taken from the schema what this code needs.
        Unavailable: the tables were in use for too long.
    """

    def work(connection: Connection) -> None:
        position = _hold_position(connection)
        if revision == HEAD and not connection.dialect.get_table_names(connection):
            _create(connection)
        elif revision != HEAD or not _is_enough(position):
            _note_revision(connection, position)
            upgrade(connection, _REVISION, revision)
            _note_oldest_code(connection)
            _make_vectors(connection)

    if revision != HEAD or not _is_enough(await database.read(position_of)):
        await _persist(database, work)


async def migrate_back(database: Database, revision: str) -> None:
    """Downgrade in one transaction; what only later revisions know is lost. No replica may run meanwhile.

    Raises:
        UnknownSchema: the schema is newer than this code.
        ValueError: the revision is none that comes before the schema's.
        Unavailable: the tables were in use for too long.
    """

    def work(connection: Connection) -> None:
        position = _hold_position(connection)
        refuse_unknown(position)
        earlier = [each for each in all_revisions() if position.revision is not None and each < position.revision]
        if revision not in (*earlier, BASE):
            known = ", ".join(earlier) or "none"
            raise ValueError(f"{revision} is no revision before {position.revision}; these are: {known}")
        _note_revision(connection, position)
        downgrade(connection, _REVISION, revision)
        _note_oldest_code(connection)

    await _persist(database, work)


def position_of(connection: Connection) -> Position:
    """Return where a database stands."""
    oldest_code = _version_in(connection, _OLDEST_CODE)
    return Position(revision=_version_in(connection, _REVISION) or oldest_code, oldest_code=oldest_code)


async def _persist(database: Database, work: Callable[[Connection], None]) -> None:
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            await database.write(work, timeout_seconds=None)
        except Unavailable as error:
            if cause_of(error) != _LOCK_NOT_GIVEN or not attempts_left:
                raise
            await asyncio.sleep(_PAUSE_SECONDS)
        else:
            return


def _hold_position(connection: Connection) -> Position:
    """Wait until no other process migrates, and return where the database stands then."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SET LOCAL lock_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        connection.execute(text(f"SET LOCAL lock_timeout = '{_LOCK_WAIT}'"))
    return position_of(connection)


def _is_enough(position: Position) -> bool:
    """Whether this code may run on the schema as it is."""
    refuse_unknown(position)
    return position.revision is not None and position.revision >= newest_revision()


def refuse_unknown(position: Position) -> None:
    """Check that this code may run on a schema.

    Raises:
        UnknownSchema: it may not.
    """
    if position.oldest_code is not None and position.oldest_code > newest_revision():
        raise UnknownSchema(
            f"the database's schema {position.revision} takes a release that knows schema {position.oldest_code}, and"
            f" this release knows schemas up to {newest_revision()}: start the newer release, or let it downgrade the"
            " schema"
        )


def _version_in(connection: Connection, table: str) -> str | None:
    if not connection.dialect.has_table(connection, table):
        return None
    return connection.execute(text(f"SELECT version_num FROM {table}")).scalar()  # noqa: S608  # one of two constants


def _create(connection: Connection) -> None:
    metadata.create_all(connection, checkfirst=False)
    for statement in SEARCH_TABLES[connection.dialect.name]:
        connection.execute(text(statement))
    make_vector_table(connection)
    _set_version(connection, _REVISION, newest_revision())
    _note_oldest_code(connection)


def _make_vectors(connection: Connection) -> None:
    """Make the table of vectors where the schema has what belongs to it."""
    if connection.dialect.has_table(connection, vector_space.name):
        make_vector_table(connection)


def _note_revision(connection: Connection, position: Position) -> None:
    """Write the revision where alembic looks for it; the first release has written it elsewhere."""
    if not connection.dialect.has_table(connection, _REVISION):
        _set_version(connection, _REVISION, position.revision)


def _note_oldest_code(connection: Connection) -> None:
    revision = _version_in(connection, _REVISION)
    _set_version(connection, _OLDEST_CODE, oldest_code_for(revision) if revision is not None else None)


def _set_version(connection: Connection, table: str, revision: str | None) -> None:
    """Write the row of a table in the form of alembic's own, which is made where it is missing."""
    connection.execute(
        text(f"""
            CREATE TABLE IF NOT EXISTS {table} (
                version_num VARCHAR(32) NOT NULL, CONSTRAINT {table}_pkc PRIMARY KEY (version_num)
            )
        """)
    )
    connection.execute(text(f"DELETE FROM {table}"))  # noqa: S608  # one of two constants
    if revision is not None:
        connection.execute(
            text(f"INSERT INTO {table} (version_num) VALUES (:revision)"),  # noqa: S608  # one of two constants
            {"revision": revision},
        )
