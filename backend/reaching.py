"""Reaching what the settings name, with errors that name the setting."""

import random
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

from backend.embeddings.wiring import vision_model_of
from backend.extraction.formats.reader import LibraryDocumentReader
from backend.extraction.wiring import build_reader
from backend.foundation.redis.chosen import open_redis
from backend.foundation.redis.commands import RedisClient
from backend.foundation.services.supervision import Supervisor
from backend.foundation.sql.chosen import check_database_reachable, open_database
from backend.foundation.sql.database import Database
from backend.foundation.telemetry.background import LoggingFailureObserver
from backend.limits.ports.rates import RateStore
from backend.limits.wiring import rate_store
from backend.search.ports.engine import ChunkEngine
from backend.search.wiring import open_engine
from backend.settings import DatabaseSettings, ReadingSettings, Settings
from backend.streams.ports.events import Tenure
from backend.streams.wiring import Streams, memory_streams, redis_streams
from shared.clock import Clock, SystemClock
from shared.environment import WrongSetting


@asynccontextmanager
async def reach_database(settings: DatabaseSettings) -> AsyncGenerator[Database]:
    """Open the database while the block runs.

    Raises:
        WrongSetting: its address cannot be used.
    """
    with naming_setting("BACKEND_DATABASE_URL"):
        database = open_database(settings.database_url)
    try:
        with naming_setting("BACKEND_DATABASE_URL"):
            await check_database_reachable(database, settings.database_url)
        yield database
    finally:
        await database.close()


def open_reader(settings: ReadingSettings, clock: Clock, stack: AsyncExitStack) -> LibraryDocumentReader:
    """Open what reads documents, with the engine for pictures.

    Raises:
        WrongSetting: this engine is not installed.
    """
    options = settings.ocr_options
    model = vision_model_of(options.model, clock, stack) if options.model is not None else None
    with naming_setting("BACKEND_OCR"):
        return build_reader(options, model, stack)


def reach_engine(settings: DatabaseSettings, stack: AsyncExitStack) -> ChunkEngine | None:
    """Return the search engine beside the database, which is open until the stack ends; None where none is set.

    Raises:
        WrongSetting: what it needs is not installed.
    """
    with naming_setting("BACKEND_SEARCH_URL"):
        return open_engine(settings.search_url, stack)


async def open_event_store(
    settings: Settings, supervisor: Supervisor, clock: Clock, stack: AsyncExitStack, tenure: Tenure
) -> tuple[Streams, RateStore, RedisClient | None]:
    """Open what keeps the events of turns and the counts of limits: Redis, which is returned too, or this process.

    It stays open until the stack ends.

    Raises:
        WrongSetting: Redis cannot be used at its address.
    """
    with naming_setting("BACKEND_REDIS_URL"):
        client = await open_redis(settings.redis_url, stack)
    seconds = settings.event_retention_seconds
    streams = await redis_streams(client, seconds, supervisor, stack, tenure) if client else memory_streams(seconds)
    return streams, rate_store(client, clock), client


async def check_redis(settings: Settings, stack: AsyncExitStack) -> None:
    """Find out whether Redis can be used at its address.

    Raises:
        WrongSetting: it cannot.
    """
    supervisor = Supervisor(LoggingFailureObserver(), random.random)
    await open_event_store(settings, supervisor, SystemClock(), stack, lambda: lambda: True)


@contextmanager
def naming_setting(name: str) -> Generator[None]:
    """Name the setting in an error about its value."""
    try:
        yield
    except ValueError as error:
        raise WrongSetting(f"{name}: {error}") from None
