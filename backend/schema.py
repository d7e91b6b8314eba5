"""Bringing the database to a schema: at the start, and by the commands `migrate` and `downgrade`."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from backend.foundation.sql.chosen import trace_database
from backend.foundation.sql.database import Database
from backend.migrations.migrate import UnknownSchema, migrate, migrate_back, position_of
from backend.reaching import naming_setting, reach_database
from backend.settings import DatabaseSettings
from shared.environment import WrongSetting, cause_of, redact_address
from shared.errors import Unavailable


async def migrate_database(settings: DatabaseSettings) -> None:
    """Bring the database to the newest schema, and print what was done to which database.

    Raises:
        WrongSetting: its address cannot be used.
    """
    async with reach_database(settings) as database, _told_schemas(database, settings):
        await _migrate(database)


async def downgrade_database(settings: DatabaseSettings, revision: str) -> None:
    """Take the database's schema back to an earlier revision, and print so; no replica may run meanwhile.

    Raises:
        WrongSetting: its address cannot be used, or there is no such way back.
    """
    async with reach_database(settings) as database, _told_schemas(database, settings):
        with naming_setting("downgrade"):
            await migrate_back(database, revision)


@asynccontextmanager
async def open_migrated(settings: DatabaseSettings) -> AsyncGenerator[Database]:
    """Open the database, at the newest schema, while the block runs.

    Raises:
        WrongSetting: its address cannot be used, or its schema is of a later release.
    """
    async with reach_database(settings) as database:
        await _migrate(database)
        yield trace_database(database)


async def _migrate(database: Database) -> None:
    try:
        await migrate(database)
    except UnknownSchema as error:
        raise WrongSetting(f"BACKEND_DATABASE_URL: {error}") from None
    except Unavailable as error:
        away = f"the database went away while its schema was checked ({cause_of(error)})"
        raise WrongSetting(f"BACKEND_DATABASE_URL: {away}") from None


@asynccontextmanager
async def _told_schemas(database: Database, settings: DatabaseSettings) -> AsyncGenerator[None]:
    """Print which database it is, and which schema it had before and has after what is done inside."""
    try:
        before = (await database.read(position_of)).revision
        yield
        after = (await database.read(position_of)).revision
    except Unavailable as error:
        raise WrongSetting(f"BACKEND_DATABASE_URL: the database went away ({cause_of(error)})") from None
    told = f"had schema {before or 'none'}, has schema {after or 'none'}"
    print(f"{redact_address(settings.database_url)}: {told}", flush=True)  # noqa: T201 -- the command's answer
