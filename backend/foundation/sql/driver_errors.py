"""Translation of what the database drivers raise into our errors.

What is a defect of ours is named, and passes unchanged: a statement or a value that no database would take. Everything
else that a driver raises counts as a database that is away.
"""

import asyncio
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy import ExceptionContext
from sqlalchemy.exc import DBAPIError, IntegrityError, PendingRollbackError, ResourceClosedError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from shared.errors import BallastError, InvalidRequest, Unavailable

DISK_FULL = "The disk of the database is full."
TENANT_MOVES = "BLMOV"
"""The SQLSTATE of the fence around a tenant that moves to another cell (backend/cells)."""

# Primary result codes, https://www.sqlite.org/rescode.html; an extended code has its primary in the low byte.
_SQLITE_OURS = frozenset(
    {
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_MISUSE,
        sqlite3.SQLITE_RANGE,
    }
)
_SQLITE_OURS_WITHOUT_CODE = (sqlite3.ProgrammingError, sqlite3.DataError, sqlite3.NotSupportedError)

# Classes of https://www.postgresql.org/docs/current/errcodes-appendix.html: cardinality, data, integrity, wrong names,
# syntax and access rules, views that refuse a row, and limits of a statement.
_POSTGRES_OURS = ("21", "22", "23", "34", "3D", "3F", "42", "44", "54")
# Of these classes: an operator's grants, a database that is not there yet, and the statement names of a proxy between.
_POSTGRES_AWAY = ("42501", "3D000", "42P05")
_AWAY_SAYS = "The database is not available."
_SQLITE_SAYS: dict[int | None, str] = {sqlite3.SQLITE_FULL: DISK_FULL}
_POSTGRES_SAYS = {"53100": DISK_FULL, TENANT_MOVES: "This tenant is being moved to another cell."}
_POSTGRES_BAD_TEXT = ("22021", "22P05")
_POSTGRES_BAD_VALUE, _POSTGRES_INTEGRITY = "22", "23"

_AWAY = (PoolTimeoutError, PendingRollbackError, ResourceClosedError, TimeoutError, OSError, EOFError)


@contextmanager
def translate_sql_errors(*driver: type[Exception]) -> Generator[None]:
    """Raise `Unavailable` or `InvalidRequest` for driver errors that are no defects of ours; let the others pass.

    `driver` names the roots of what the driver raises. A cancellation that nobody asked for is the end of a
    connection, too.
    """
    task = asyncio.current_task()
    asked = task.cancelling() if task is not None else 0
    try:
        yield
    except (IntegrityError, sqlite3.IntegrityError):
        raise
    except (DBAPIError, sqlite3.Error, *driver) as error:
        translated = _translate(error)
        if translated is None:
            raise
        raise translated from error
    except _AWAY as error:
        raise _away() from error
    except asyncio.CancelledError as error:
        if task is None or task.cancelling() > asked:
            raise
        raise _away() from error


def wrap_driver_error(statement: str, error: Exception) -> DBAPIError:
    """Return the error by which SQLAlchemy would tell of one that PostgreSQL's driver has raised for a statement."""
    state = _sqlstate(error)
    _withhold_values_of(state, error)
    kind = IntegrityError if state.startswith(_POSTGRES_INTEGRITY) else DBAPIError
    return kind(statement, None, error, hide_parameters=True)


def withhold_values(context: ExceptionContext) -> None:
    """Drop values from an error that SQLAlchemy is about to raise for one of PostgreSQL's driver."""
    error, adapted = context.sqlalchemy_exception, context.original_exception
    if isinstance(error, DBAPIError):
        state = _sqlstate(error)
        _withhold_values_of(state, *filter(None, (adapted, adapted.__cause__)))
        error.args = _without_value(state, error.args)


def _withhold_values_of(state: str, *errors: BaseException) -> None:
    """Drop from what PostgreSQL and its driver raise the values of a statement, which no log may hold.

    The detail of a broken constraint quotes the row, and only the driver's own error shows it, in a traceback; an
    error of class 22 quotes the value in its very words, which SQLAlchemy repeats.
    """
    for each in errors:
        if getattr(each, "detail", None):
            setattr(each, "detail", None)  # noqa: B010  # an attribute of theirs, which no type declares
        each.args = _without_value(state, each.args)


def _without_value(state: str, said: tuple[object, ...]) -> tuple[object, ...]:
    return (f"a value was refused, SQLSTATE {state}",) if state.startswith(_POSTGRES_BAD_VALUE) else said


def _translate(error: Exception) -> BallastError | None:
    """Return our error for a driver's one, None for a defect of ours."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return _away()
    origin = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    if isinstance(origin, sqlite3.Error):
        return None if _is_ours_of_sqlite(origin) else _away(_SQLITE_SAYS.get(_code_of(origin), _AWAY_SAYS))
    state = _sqlstate(error)
    if state in _POSTGRES_BAD_TEXT:
        return InvalidRequest("The text holds a character that cannot be stored.")
    is_ours = state.startswith(_POSTGRES_OURS) and state not in _POSTGRES_AWAY
    return None if is_ours or _is_refused_by_client(origin) else _away(_POSTGRES_SAYS.get(state, _AWAY_SAYS))


def _is_ours_of_sqlite(error: sqlite3.Error) -> bool:
    code = _code_of(error)
    return code in _SQLITE_OURS if code is not None else isinstance(error, _SQLITE_OURS_WITHOUT_CODE)


def _code_of(error: sqlite3.Error) -> int | None:
    code: object = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def _is_refused_by_client(error: BaseException) -> bool:
    """Whether the driver refused a value or an option before it sent anything: such errors are values' errors, too."""
    return any(isinstance(each, ValueError | TypeError) for each in (error, error.__cause__))


def _away(says: str = _AWAY_SAYS) -> Unavailable:
    return Unavailable(says, retry_after_seconds=1)


def _sqlstate(error: Exception) -> str:
    state: object = getattr(error.orig if isinstance(error, DBAPIError) else error, "sqlstate", None)
    return state if isinstance(state, str) else ""
