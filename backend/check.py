"""`python -m backend check`: look at the settings and at all that they name, and change nothing."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from sqlalchemy import Connection, make_url

from backend.embeddings.domain import EmbedderOptions, TextKind
from backend.embeddings.wiring import provider_of
from backend.foundation.sql.database import Database
from backend.migrations.migrate import Position, UnknownSchema, position_of, refuse_unknown
from backend.reaching import check_redis, reach_database, reach_engine
from backend.search.sql.vector_schema import lack_of_vectors
from backend.settings import Settings
from shared.checked_parts import CheckedPart
from shared.clock import SystemClock
from shared.environment import WrongSetting, cause_of, read_settings, redact_address
from shared.errors import BallastError, Unavailable

_EMBEDDER_SECONDS = 10.0
_LEAST_FREE_BYTES = 1_073_741_824
_SETTINGS = "backend settings"


async def check_parts(environ: Mapping[str, str]) -> AsyncGenerator[CheckedPart]:
    """Yield what is found, part by part; behind wrong settings nothing can be looked at."""
    try:
        settings = read_settings(Settings, environ)
    except WrongSetting as wrong:
        yield CheckedPart(_SETTINGS, False, str(wrong), "correct this variable: docs/settings.md explains each")
        return
    yield CheckedPart(_SETTINGS, True, "All can be read.")
    yield await _database(settings)
    if (file := _sqlite_file(settings)) is not None:
        yield _disk(file)
    if settings.redis_url:
        yield await _redis(settings)
    if settings.search_url:
        yield await _engine(settings)
    if settings.embedder is not None:
        yield await _embedder(settings.embedder)


async def _database(settings: Settings) -> CheckedPart:
    address, file = redact_address(settings.database_url), _sqlite_file(settings)
    if file is not None and not file.exists():
        return _new_file(file)
    try:
        async with reach_database(settings) as database:
            return await _schema(database, address)
    except WrongSetting as wrong:
        mend = "let this user write the file and its folder" if file else "start PostgreSQL, or correct the address"
        return CheckedPart("database", False, str(wrong), f"{mend} (BACKEND_DATABASE_URL)")


async def _schema(database: Database, address: str) -> CheckedPart:
    try:
        position, lack = await database.read(_look)
        refuse_unknown(position)
        if position.revision is not None:
            await database.check_writable()
    except UnknownSchema as error:
        mend = "start the release that made this schema, or let it run `python -m backend downgrade`"
        return CheckedPart("database", False, str(error), mend)
    except Unavailable as error:
        mend = "see to it that this user may write, and that the disk is not full"
        return CheckedPart("database", False, f"{address} takes no writes ({cause_of(error)}).", mend)
    if lack is not None:
        mend = "install it beside PostgreSQL; until then searches are by words alone"
        return CheckedPart("database", False, f"Vectors cannot be stored without {lack}.", mend)
    return CheckedPart("database", True, f"{address} has schema {position.revision or 'none yet'}.")


def _look(connection: Connection) -> tuple[Position, str | None]:
    return position_of(connection), lack_of_vectors(connection)


def _sqlite_file(settings: Settings) -> Path | None:
    url = make_url(settings.database_url)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def _new_file(file: Path) -> CheckedPart:
    """Tell whether the first start can make a database file; it is not made here."""
    parent = _nearest_parent(file)
    if parent.is_dir() and _may_write(parent):
        return CheckedPart("database", True, f"{file} does not exist yet; the first start makes it.")
    mend = "let this user write there, or name another file with BACKEND_DATABASE_URL"
    return CheckedPart("database", False, f"{file} cannot be made: {parent} is no folder that can be written.", mend)


def _nearest_parent(file: Path) -> Path:
    return next(parent for parent in file.absolute().parents if parent.exists())


def _may_write(folder: Path) -> bool:
    probe = folder / ".ballast-check"
    try:
        probe.touch()
        probe.unlink()
    except OSError:
        return False
    return True


def _disk(file: Path) -> CheckedPart:
    free_bytes = shutil.disk_usage(_nearest_parent(file)).free
    found = f"{free_bytes / 1_000_000_000:.1f} GB are free beside {file}."
    return CheckedPart("disk", free_bytes >= _LEAST_FREE_BYTES, found, "make room, or move the file to a larger disk")


async def _redis(settings: Settings) -> CheckedPart:
    try:
        async with AsyncExitStack() as stack:
            await check_redis(settings, stack)
    except WrongSetting as wrong:
        mend = "start Redis or Valkey, or correct the address; a single replica needs none"
        return CheckedPart("Redis", False, str(wrong), mend)
    return CheckedPart("Redis", True, f"{redact_address(settings.redis_url)} answers.")


async def _engine(settings: Settings) -> CheckedPart:
    mend = "start it, or correct the address (BACKEND_SEARCH_URL); until then the database answers searches"
    try:
        async with AsyncExitStack() as stack:
            engine = reach_engine(settings, stack)
            held = await engine.count([]) if engine is not None else 0
    except (WrongSetting, Unavailable) as error:
        return CheckedPart("search engine", False, str(error), mend)
    return CheckedPart("search engine", True, f"{redact_address(settings.search_url)} holds {held} chunks.")


async def _embedder(options: EmbedderOptions) -> CheckedPart:
    mend = "start it, or correct BACKEND_EMBEDDING_BASE_URL, _MODEL and _API_KEY; until then searches are by words"
    try:
        async with asyncio.timeout(_EMBEDDER_SECONDS), AsyncExitStack() as stack:
            await provider_of(options, SystemClock(), stack).embed(["ballast"], TextKind.PASSAGE)
    except (BallastError, TimeoutError) as error:
        return CheckedPart("embedder", False, f"{options.address.base_url}: {_explain(error)}", mend)
    return CheckedPart("embedder", True, f"{options.configured.model} makes vectors.")


def _explain(error: BaseException) -> str:
    return error.message if isinstance(error, BallastError) else f"no answer within {_EMBEDDER_SECONDS:.0f} s"
