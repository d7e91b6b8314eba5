"""Bring a database to the newest schema.

Alembic and what it loads take more memory than any other library of this service, and most starts find nothing
to do: it is loaded only where there is something, and by a child where the process lives on.
"""

import asyncio
import sys
from pathlib import Path

from sqlalchemy import Connection, text

from backend.adapters.sql.database import Database
from shared.errors import InternalError
from shared.loading import load

_UPGRADE = "backend.adapters.sql.upgrade"
_VERSIONS = Path(__file__).parent / "migrations" / "versions"
_FIND_REVISION = text("SELECT version_num FROM alembic_version")


async def migrate(database: Database, revision: str = "head") -> None:
    """Upgrade in this process; any number of processes may try at once, one works and the others wait."""
    if revision != "head" or not await _is_newest(database):
        await load(f"{_UPGRADE}:upgrade")(database, revision)


async def migrate_apart(database: Database, url: str) -> None:
    """Do as `migrate` to the newest schema, in a child that is told `url`, the database's own address.

    Raises:
        InternalError: the child failed; what it said stands in our own error output.
    """
    if not await _is_newest(database):
        await _run_child(url)


def newest_revision() -> str:
    """Return the number that the name of the newest script begins with."""
    return max(path.stem.partition("_")[0] for path in _VERSIONS.glob("[0-9]*.py"))


async def _is_newest(database: Database) -> bool:
    def work(connection: Connection) -> bool:
        if not connection.dialect.has_table(connection, "alembic_version"):
            return False
        return connection.execute(_FIND_REVISION).scalars().all() == [newest_revision()]

    return await database.read(work)


async def _run_child(url: str) -> None:
    # Not as an argument, which every user of the machine can see: the address may hold a password.
    child = await asyncio.create_subprocess_exec(sys.executable, "-m", _UPGRADE, stdin=asyncio.subprocess.PIPE)
    try:
        await child.communicate(url.encode())
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        raise InternalError("The database could not be brought to the newest schema.")
