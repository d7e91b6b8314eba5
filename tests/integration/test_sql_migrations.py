"""Migrations make exactly the tables that the code knows, keep what is there, and may be run by many at once."""

import asyncio
import importlib
import pkgutil
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, text

from backend.adapters import sql
from backend.adapters.sql import schema
from backend.adapters.sql.database import open_database
from backend.adapters.sql.migrate import migrate, migrate_apart, newest_revision
from backend.adapters.sql.upgrade import SCRIPTS
from shared.errors import InternalError
from tests.contract.store_cases import database_url, make_turn, migrated, sql_stores


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return database_url(request.param, request, tmp_path)


def import_every_table() -> None:
    for module in pkgutil.walk_packages(sql.__path__, f"{sql.__name__}."):
        if ".migrations" not in module.name:
            importlib.import_module(module.name)


def is_ours(_object: Any, name: str | None, kind: str, _reflected: bool, _compared: Any) -> bool:
    """Leave out what differs by database and is written in SQL: search indexes and their shadow tables."""
    return not (kind == "table" and name is not None and name.startswith(("fts_", "search_")))


async def test_the_migrated_database_is_what_the_code_says(url: str) -> None:
    import_every_table()

    def differences(connection: Connection) -> list[Any]:
        options = {"include_object": is_ours, "compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, schema.metadata))

    async with migrated(url) as database:
        assert await database.read(differences) == []


async def test_migrating_again_keeps_what_is_there(url: str) -> None:
    database = open_database(url)
    await migrate(database, "0001")
    stores = sql_stores(database)
    await stores.turns.begin(make_turn())
    await migrate(database)
    await migrate(database)
    assert await stores.turns.find("resp_a") == make_turn().response
    assert await stores.conversations.log("conv_a") == make_turn().entries
    await database.close()


async def test_many_may_migrate_at_once(url: str) -> None:
    databases = [open_database(url) for _ in range(4)]
    await asyncio.gather(*(migrate(database) for database in databases))
    await sql_stores(databases[0]).turns.begin(make_turn())
    for database in databases:
        await database.close()


async def test_a_child_brings_what_is_missing_and_nothing_twice(url: str) -> None:
    database = open_database(url)
    await migrate(database, "0001")
    stores = sql_stores(database)
    await stores.turns.begin(make_turn())
    await migrate_apart(database, url)
    assert await database.read(_revisions) == [newest_revision()]
    # A child would fail at this address; none is needed any more.
    await migrate_apart(database, "postgresql+asyncpg://127.0.0.1:1/nowhere")
    assert await stores.turns.find("resp_a") == make_turn().response
    await database.close()


async def test_a_child_that_fails_stops_the_start(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    database = open_database(f"sqlite+aiosqlite:///{tmp_path}/ballast.db")
    with pytest.raises(InternalError):
        await migrate_apart(database, f"sqlite+aiosqlite:///{tmp_path}")
    assert "Error" in capfd.readouterr().err
    await database.close()


async def test_a_newer_schema_than_ours_is_refused(tmp_path: Path) -> None:
    """As after a rollback to a release that does not know what a newer one has made."""
    async with migrated(f"sqlite+aiosqlite:///{tmp_path}/ballast.db") as database:
        await database.write(_pretend_a_newer_revision)
        with pytest.raises(CommandError):
            await migrate(database)


def test_the_newest_revision_is_told_without_alembic() -> None:
    assert ScriptDirectory(str(SCRIPTS)).get_heads() == [newest_revision()]


def _revisions(connection: Connection) -> list[str]:
    return list(connection.execute(text("SELECT version_num FROM alembic_version")).scalars())


def _pretend_a_newer_revision(connection: Connection) -> None:
    connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
