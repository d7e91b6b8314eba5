"""Migrations make exactly the tables that the code knows, keep what is there, and may be run by many at once."""

import asyncio
import importlib
import pkgutil
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from backend.adapters import sql
from backend.adapters.sql import schema
from backend.adapters.sql.database import open_database
from backend.adapters.sql.migrate import migrate
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
