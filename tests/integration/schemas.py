"""Schemas of databases that a test migrates."""

import importlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import backend
from backend.foundation.sql.chosen import open_database
from backend.foundation.sql.database import Database

SQLITE_SHAPE = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"


def import_every_table() -> None:
    for path in Path(backend.__path__[0]).glob("*/sql/tables.py"):
        importlib.import_module(f"backend.{path.parts[-3]}.sql.tables")


@asynccontextmanager
async def closing_database(url: str) -> AsyncGenerator[Database]:
    database = open_database(url)
    try:
        yield database
    finally:
        await database.close()
