"""Statements that stand between a user and his answer: compiled once, then run on the driver itself.

SQLAlchemy's own execution of a statement costs about twenty times what SQLite takes for it. What it knows of
types is kept: parameters and columns go through the same conversions.
"""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection, Dialect, Executable
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.selectable import ReturnsRows
from sqlalchemy.types import TypeEngine

Parameters = Mapping[str, Any]
Row = Mapping[str, Any]
_Conversion = Callable[[Any], Any] | None


class Prepared:
    """A statement with named parameters; an INSERT or UPDATE sets the columns that they name."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._on_sqlite: dict[frozenset[str], _OnSqlite] = {}

    def rows(self, connection: Connection, parameters: Parameters) -> Sequence[Row]:
        """Run it and return its rows, by column."""
        if connection.dialect.name != "sqlite":
            return cast(Sequence[Row], connection.execute(self._statement, parameters).mappings().all())
        return self._compiled(connection, parameters).rows(driver_of(connection), parameters)

    def first(self, connection: Connection, parameters: Parameters) -> Row | None:
        """Run it and return its first row."""
        return next(iter(self.rows(connection, parameters)), None)

    def change(self, connection: Connection, *parameters: Parameters) -> int:
        """Run it for each set of parameters, which all have the same names; return how many rows it changed."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self._statement, parameters).rowcount
        compiled = self._compiled(connection, parameters[0])
        return sum(compiled.change(driver_of(connection), each) for each in parameters)

    def _compiled(self, connection: Connection, parameters: Parameters) -> "_OnSqlite":
        names = frozenset(parameters)
        found = self._on_sqlite.get(names)
        if found is None:
            found = self._on_sqlite[names] = _compile(self._statement, connection.dialect, names)
        return found


@dataclass(frozen=True)
class _OnSqlite:
    """What the driver is given, and how its values are read; `constants` stand in the statement itself."""

    text: str
    constants: Parameters
    places: tuple[tuple[str, _Conversion], ...]
    columns: tuple[tuple[str, _Conversion], ...]

    def rows(self, driver: sqlite3.Connection, parameters: Parameters) -> Sequence[Row]:
        return [self._row(values) for values in driver.execute(self.text, self._values(parameters))]

    def change(self, driver: sqlite3.Connection, parameters: Parameters) -> int:
        return driver.execute(self.text, self._values(parameters)).rowcount

    def _values(self, parameters: Parameters) -> list[Any]:
        known = {**self.constants, **parameters}
        return [convert(known[name]) if convert else known[name] for name, convert in self.places]

    def _row(self, values: Iterable[Any]) -> Row:
        return {
            name: convert(value) if convert else value
            for (name, convert), value in zip(self.columns, values, strict=True)
        }


def _compile(statement: Executable, dialect: Dialect, names: Iterable[str]) -> _OnSqlite:
    compiled = cast(SQLCompiler, cast(ClauseElement, statement).compile(dialect=dialect, column_keys=sorted(names)))
    binds = compiled.binds
    places = tuple((name, _to_driver(binds[name].type, dialect)) for name in compiled.positiontup or ())
    shown = statement.exported_columns if isinstance(statement, ReturnsRows) else ()
    return _OnSqlite(
        text=compiled.string,
        constants={name: bind.value for name, bind in binds.items() if not bind.required},
        places=places,
        columns=tuple((column.name, _from_driver(column.type, dialect)) for column in shown),
    )


def _to_driver(kind: TypeEngine[Any], dialect: Dialect) -> _Conversion:
    return kind.dialect_impl(dialect).bind_processor(dialect)


def _from_driver(kind: TypeEngine[Any], dialect: Dialect) -> _Conversion:
    return kind.dialect_impl(dialect).result_processor(dialect, None)


def driver_of(connection: Connection) -> sqlite3.Connection:
    """Return SQLite's own connection beneath SQLAlchemy's."""
    return cast(sqlite3.Connection, connection.connection.driver_connection)
