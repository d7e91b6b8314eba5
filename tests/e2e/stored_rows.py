"""Rows in the backend's database, read and written past it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import text

from backend.foundation.sql.chosen import open_database
from tests.e2e.pair import Pair


async def write(pair: Pair, statement: str, *, rows: int = 1, **values: object) -> None:
    """Run a statement past the backend, which must change so many rows."""
    default = f"sqlite+aiosqlite:///{pair.backend.spec.directory}/var/ballast.db"
    database = open_database(pair.backend.spec.environment.get("BACKEND_DATABASE_URL", default))
    changed = await database.write(lambda connection: connection.execute(text(statement), values).rowcount)
    await database.close()
    assert changed == rows


def count_rows(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])
