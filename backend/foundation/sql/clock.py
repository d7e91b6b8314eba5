"""The clock of the database, by which all processes agree on what has expired."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Float, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from backend.foundation.sql.schema import Instant


class _DatabaseTime(FunctionElement[datetime]):
    """The instant at which the statement runs, plus seconds."""

    type = Instant()
    inherit_cache = True
    name = "database_time"


@compiles(_DatabaseTime, "postgresql")
def _in_postgresql(element: _DatabaseTime, compiler: SQLCompiler, **options: Any) -> str:
    seconds = compiler.process(element.clauses, **options)
    return f"(clock_timestamp() + make_interval(secs => CAST({seconds} AS double precision)))"


@compiles(_DatabaseTime, "sqlite")
def _in_sqlite(element: _DatabaseTime, compiler: SQLCompiler, **options: Any) -> str:
    # SQLite counts milliseconds; a column of instants holds six digits, and texts are compared.
    seconds = compiler.process(element.clauses, **options)
    return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', ({seconds}) || ' seconds')"


def database_time(plus_seconds: str) -> ColumnElement[datetime]:
    """Return the expression for the time at which a statement runs, plus seconds, a parameter of that name."""
    seconds: ColumnElement[float] = bindparam(plus_seconds, type_=Float())
    return _DatabaseTime(seconds)
