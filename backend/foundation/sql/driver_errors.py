"""Translation of what the database drivers raise into our errors."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy import ExceptionContext
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from shared.errors import InvalidRequest, Unavailable

# Primary result codes, https://www.sqlite.org/rescode.html; an extended code has its primary in the low byte.
_SQLITE_AWAY = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
    }
)

# Classes and codes of https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRES_AWAY = ("08", "25006", "25P03", "40", "53", "55P03", "57")
_POSTGRES_BAD_TEXT = ("22021", "22P05")
_POSTGRES_BAD_VALUE = "22"


@contextmanager
def sql_errors_translated() -> Generator[None]:
    """Raise `Unavailable` or `InvalidRequest` for driver errors that are no defects of ours; let the others pass."""
    try:
        yield
    except (IntegrityError, sqlite3.IntegrityError):
        raise
    except sqlite3.Error as error:
        if _is_sqlite_away(error):
            raise Unavailable("The database is not available.", retry_after_seconds=1) from error
        raise
    except DBAPIError as error:
        if _is_bad_text(error):
            raise InvalidRequest("The text holds a character that cannot be stored.") from error
        if _is_away(error):
            raise Unavailable("The database is not available.", retry_after_seconds=1) from error
        raise
    except (PoolTimeoutError, TimeoutError, OSError) as error:
        raise Unavailable("The database is not available.", retry_after_seconds=1) from error


def withhold_values(context: ExceptionContext) -> None:
    """Drop from what PostgreSQL and its driver raise the values of a statement, which no log may hold.

    The detail of a broken constraint quotes the row, and only the driver's own error shows it, in a traceback; an
    error of class 22 quotes the value in its very words, which SQLAlchemy repeats.
    """
    error, adapted = context.sqlalchemy_exception, context.original_exception
    if not isinstance(error, DBAPIError):
        return
    driver = adapted.__cause__
    state = _sqlstate(error)
    for each in (adapted, driver):
        if getattr(each, "detail", None):
            setattr(each, "detail", None)  # noqa: B010  # an attribute of theirs, which no type declares
    if state.startswith(_POSTGRES_BAD_VALUE):
        for each in filter(None, (error, adapted, driver)):
            each.args = (f"a value was refused, SQLSTATE {state}",)


def _is_bad_text(error: DBAPIError) -> bool:
    return _sqlstate(error) in _POSTGRES_BAD_TEXT


def _is_away(error: DBAPIError) -> bool:
    if error.connection_invalidated or isinstance(error.orig, OSError):
        return True
    if isinstance(error.orig, sqlite3.Error):
        return _is_sqlite_away(error.orig)
    return _sqlstate(error).startswith(_POSTGRES_AWAY)


def _is_sqlite_away(error: BaseException) -> bool:
    code: object = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF in _SQLITE_AWAY


def _sqlstate(error: DBAPIError) -> str:
    state: object = getattr(error.orig, "sqlstate", None)
    return state if isinstance(state, str) else ""
