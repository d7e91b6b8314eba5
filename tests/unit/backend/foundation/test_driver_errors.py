"""What a driver raises is a defect of ours, or the database or Redis is away."""

import asyncio
import sqlite3

import asyncpg
import pytest
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    DataError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
)
from sqlalchemy.exc import DBAPIError

from backend.foundation.redis.client import await_answer
from backend.foundation.sql.driver_errors import translate_sql_errors
from shared.errors import InvalidRequest, Unavailable
from tests.fakes.driver_errors import asyncpg_errors, connection_errors, redis_errors, sqlite_errors, wrapped

POSTGRES = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
OURS_OF_SQLITE = {1, 18, 19, 20, 21, 25}
OURS_OF_POSTGRES = {"21", "22", "23", "34", "3D", "3F", "42", "44", "54"}


def outcome(error: BaseException) -> BaseException:
    """Return what the translation makes of an error."""
    try:
        with translate_sql_errors(*POSTGRES):
            raise error
    except BaseException as seen:  # noqa: BLE001 -- cancellations are among them
        return seen


def is_ours(error: BaseException) -> bool:
    state = getattr(error, "sqlstate", None)
    if isinstance(error, ValueError | TypeError):
        return True
    return state is not None and state[:2] in OURS_OF_POSTGRES and state not in ("42501", "42P05", "3D000")


async def test_of_postgresql_all_but_our_own_defects_is_away_wrapped_or_not() -> None:
    seen = {True: 0, False: 0}
    for error in asyncpg_errors():
        state = getattr(error, "sqlstate", None)
        for raised in (error, wrapped(error)):
            translated = outcome(raised)
            if state in ("22021", "22P05"):
                assert isinstance(translated, InvalidRequest), error
            elif is_ours(error):
                assert translated is raised, error
            else:
                assert isinstance(translated, Unavailable), error
                assert translated.__cause__ is raised
        seen[is_ours(error)] += 1
    assert min(seen.values()) > 50


async def test_of_sqlite_all_but_our_own_defects_is_away() -> None:
    for error in sqlite_errors():
        code = getattr(error, "sqlite_errorcode", None)
        unnamed = isinstance(
            error, sqlite3.ProgrammingError | sqlite3.DataError | sqlite3.NotSupportedError | sqlite3.IntegrityError
        )
        ours = unnamed if code is None else code in OURS_OF_SQLITE
        assert (outcome(error) is error) == ours, (error, code)
        assert ours or isinstance(outcome(error), Unavailable)


async def test_the_end_of_a_connection_is_away() -> None:
    for error in connection_errors():
        assert isinstance(outcome(error), Unavailable), error


async def test_a_cancellation_that_somebody_asked_for_is_none_of_a_connection() -> None:
    async def work() -> None:
        with translate_sql_errors():
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_broken_connection_is_away_whatever_its_statement_said() -> None:
    error = DBAPIError("SELECT 1", {}, asyncpg.UndefinedTableError("gone"), connection_invalidated=True)
    assert isinstance(outcome(error), Unavailable)


async def redis_outcome(error: BaseException) -> BaseException:
    async def answer() -> None:
        raise error

    (seen,) = await asyncio.gather(await_answer(answer()), return_exceptions=True)
    assert seen is not None
    return seen


async def test_of_redis_all_but_a_command_that_no_redis_would_take_is_away() -> None:
    for error in redis_errors():
        ours = type(error) in (ResponseError, DataError) and not str(error).split(" ")[0].isupper()
        seen = await redis_outcome(error)
        assert seen is error if ours else isinstance(seen, Unavailable), error
    for kind in (OutOfMemoryError, ReadOnlyError, BusyLoadingError, AuthenticationError):
        assert isinstance(await redis_outcome(kind("refused")), Unavailable)
    for text in ("unknown command 'X'", "WRONGTYPE Operation against a key", "syntax error"):
        assert isinstance(await redis_outcome(ResponseError(text)), ResponseError)
