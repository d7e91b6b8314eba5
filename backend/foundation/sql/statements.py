"""Statements that are built once, and run with named parameters."""

import re
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from sqlalchemy import ClauseElement, Connection, Dialect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import KeyedColumnElement

Parameters = Mapping[str, object]
Row = Mapping[str, Any]
"""A row by column; SQLAlchemy knows the types of the values, and the type checker does not."""


_Names = tuple[str, ...]
_Converter = Callable[[Any], object] | None


class _Compiled(NamedTuple):
    """A statement as a driver takes it; `places` names the value of each of its places, and how it is converted.

    `columns` are those of its rows that are converted, too.
    """

    text: str
    places: tuple[tuple[str, _Converter], ...]
    columns: Mapping[str, Callable[[Any], object]]

    def values(self, parameters: Parameters) -> tuple[object, ...]:
        """Return the values in the order of the places."""
        return tuple(
            [parameters[name] if convert is None else convert(parameters[name]) for name, convert in self.places]
        )

    def row(self, found: Iterable[tuple[str, Any]]) -> Row:
        """Return a row of the driver's, by column."""
        row = dict(found)
        for name, convert in self.columns.items():
            row[name] = convert(row[name])
        return row


class Statement:
    """A statement with named parameters; an INSERT or UPDATE sets the columns that they name."""

    def __init__(self, statement: ClauseElement) -> None:
        self._statement = statement
        self._compiled: dict[tuple[str, _Names], _Compiled | None] = {}

    def rows(self, connection: Connection, parameters: Parameters) -> Sequence[Row]:
        """Run it and return its rows, by column."""
        compiled = self.compile(connection.dialect, parameters)
        if compiled is None or connection.dialect.name != "sqlite":
            return cast(Sequence[Row], connection.execute(cast(Any, self._statement), parameters).mappings().all())
        found = driver_of(connection).execute(compiled.text, compiled.values(parameters))
        names = [column[0] for column in found.description]
        return [compiled.row(zip(names, row, strict=True)) for row in found]

    def first(self, connection: Connection, parameters: Parameters) -> Row | None:
        """Run it and return its first row."""
        return next(iter(self.rows(connection, parameters)), None)

    def change(self, connection: Connection, *parameters: Parameters) -> int:
        """Run it for each set of parameters, which all have the same names; return how many rows it changed."""
        compiled = self.compile(connection.dialect, parameters[0])
        if compiled is None:
            given = parameters[0] if len(parameters) == 1 else parameters
            return connection.execute(cast(Any, self._statement), given).rowcount
        values = [compiled.values(each) for each in parameters]
        if connection.dialect.name == "sqlite":
            driver = driver_of(connection)
            if len(values) == 1:
                return driver.execute(compiled.text, values[0]).rowcount
            return driver.executemany(compiled.text, values).rowcount
        return connection.exec_driver_sql(compiled.text, values[0] if len(values) == 1 else values).rowcount

    def compile(self, dialect: Dialect, parameters: Parameters) -> _Compiled | None:
        """Return its text for parameters of these names; None where values are written into the text each time.

        SQLAlchemy finds it anew at each execution, which takes longer than the statement itself does on SQLite.
        """
        key = (dialect.name, tuple(parameters))
        if key not in self._compiled:
            self._compiled[key] = self._compile(dialect, key[1])
        return self._compiled[key]

    def _compile(self, dialect: Dialect, names: _Names) -> _Compiled | None:
        compiled = cast(SQLCompiler, self._statement.compile(dialect=dialect, column_keys=list(names)))
        order = tuple(compiled.positiontup or ())
        if compiled.post_compile_params or not set(order) <= set(names):
            return None
        types = {name: compiled.binds[name].type.dialect_impl(dialect) for name in order}
        places = tuple((name, types[name].bind_processor(dialect)) for name in order)
        found: Iterable[KeyedColumnElement[Any]] = getattr(self._statement, "exported_columns", ())
        read = {column.key: column.type.dialect_impl(dialect).result_processor(dialect, None) for column in found}
        return _Compiled(str(compiled), places, {name: each for name, each in read.items() if each is not None})


class NothingMet(Exception):
    """A change that must meet a row has met none; nothing was changed by those that were to be committed with it."""


class Change(NamedTuple):
    """A statement that changes rows, and the parameters for each time that it is run.

    One that `must_meet` a row keeps all that are committed with it from being made where it meets none.
    """

    statement: Statement
    parameters: Sequence[Parameters]
    must_meet: bool = False


LONGEST_GROUP = 8
"""How many statements become one: each combination is a text of its own, which the database prepares."""

_COUNT_OR_ERROR = "count(*) / least(count(*), 1)"
_DIVISION_BY_ZERO = "22012"
_NUMBER = re.compile(r"\$(\d+)")


def change_together(connection: Connection, changes: Sequence[Change]) -> list[int]:
    """Run changes of different rows, none of which looks at what the others change; return how many rows each met.

    On PostgreSQL a few statements become one, which takes one round trip. The number is negative where a change of many
    rows was too large for that, of which not every driver tells it.

    Raises:
        NothingMet: roll back what was done before.
    """
    joined = join_changes(connection.dialect, changes)
    if joined is not None:
        return joined.run(lambda statement, values: connection.exec_driver_sql(statement, values).one())
    return [_make(connection, change) for change in changes if change.parameters]


def _make(connection: Connection, change: Change) -> int:
    count = change.statement.change(connection, *change.parameters)
    if change.must_meet and not count:
        raise NothingMet
    return count


class JoinedChanges(NamedTuple):
    """Changes as one statement of PostgreSQL, each of them a query of its WITH clause.

    Foreign keys are checked at its end, so that rows may refer to each other
    (https://www.postgresql.org/docs/current/queries-with.html#QUERIES-WITH-MODIFYING).
    """

    text: str
    values: tuple[object, ...]
    sizes: tuple[int, ...]

    def run(self, fetch_one: Callable[[str, tuple[object, ...]], Sequence[int]]) -> list[int]:
        """Run it; return how many rows each change met.

        Raises:
            NothingMet: the database has undone the statement.
        """
        try:
            counts = iter(fetch_one(self.text, self.values))
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == _DIVISION_BY_ZERO:
                raise NothingMet from None
            raise
        return [sum(next(counts) for _ in range(size)) for size in self.sizes]


def join_changes(dialect: Dialect, changes: Sequence[Change]) -> JoinedChanges | None:
    """Join changes into one statement; None where there are too many, or the database knows no such statement."""
    if dialect.name != "postgresql":
        return None
    steps = [(change.statement.compile(dialect, each), each) for change in changes for each in change.parameters]
    texts = tuple([compiled.text for compiled, _ in steps if compiled is not None])
    if not 1 <= len(steps) <= LONGEST_GROUP or len(texts) != len(steps):
        return None
    values = [value for compiled, each in steps if compiled is not None for value in compiled.values(each)]
    sizes = tuple([len(change.parameters) for change in changes if change.parameters])
    demanded = tuple([change.must_meet for change in changes for _ in change.parameters])
    return JoinedChanges(_as_one(texts, demanded), tuple(values), sizes)


@lru_cache(maxsize=256)
def _as_one(texts: tuple[str, ...], demanded: tuple[bool, ...]) -> str:
    """Write statements as one that returns how many rows each of them changed.

    The counts are asked for in their order, which is that in which PostgreSQL runs the changes. One that is demanded
    and is zero is an error, which undoes the statement.
    """
    queries: list[str] = []
    first = 0
    for place, each in enumerate(texts):
        shifted = _shift(each, first)
        first += len(set(_NUMBER.findall(each)))
        queries.append(f"changed_{place} AS ({shifted} RETURNING 1)")
    counted = [_COUNT_OR_ERROR if each else "count(*)" for each in demanded]
    counts = ", ".join(f"(SELECT {each} FROM changed_{place})" for place, each in enumerate(counted))  # noqa: S608
    return f"WITH {', '.join(queries)} SELECT {counts}"


def _shift(each: str, by: int) -> str:
    return _NUMBER.sub(lambda found: f"${int(found[1]) + by}", each)


# The one row that every database has. Where somebody else holds it, an upgrade is under way, and nothing is written:
# that must not take all processes out of their balancer.
_WRITE_PROBE = {
    "sqlite": text("UPDATE alembic_version SET version_num = version_num"),
    "postgresql": text("""
        UPDATE alembic_version SET version_num = version_num
        WHERE version_num IN (SELECT version_num FROM alembic_version FOR UPDATE SKIP LOCKED)
    """),
}


# When its disk is full PostgreSQL writes into pages and a log that it has; a turn needs new pages, and so do these
# bytes, which no compression makes less. A large object needs no table, and is taken back.
_FILLER = secrets.token_bytes(16_384)
_TAKE_ROOM = text("SELECT lo_from_bytea(0, :filler)")


def write_probe(connection: Connection) -> None:
    """Write a row as it is, to find out whether the database takes writes, and whether there is room for more."""
    connection.execute(_WRITE_PROBE[connection.dialect.name])
    if connection.dialect.name == "postgresql":
        with connection.begin_nested() as taken:
            connection.execute(_TAKE_ROOM, {"filler": _FILLER})
            taken.rollback()


def driver_of(connection: Connection) -> sqlite3.Connection:
    """Return SQLite's own connection beneath SQLAlchemy's."""
    return cast(sqlite3.Connection, connection.connection.driver_connection)
