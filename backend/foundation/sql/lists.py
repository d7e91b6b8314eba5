"""Lists as parameters: a statement that is the same for every length can be built, and compiled, once."""

from collections.abc import Sequence
from typing import Any, Literal

import orjson
from sqlalchemy import ARRAY, Column, ColumnElement, Text, bindparam, func, select

Dialect = Literal["sqlite", "postgresql"]


def is_among(column: Column[Any], name: str, dialect: Dialect) -> ColumnElement[bool]:
    """Ask for rows whose column is one of the parameter's values."""
    if dialect == "postgresql":
        return column == func.any(bindparam(name, type_=ARRAY(column.type)))
    values = func.json_each(bindparam(name, type_=Text())).table_valued("value")
    return column.in_(select(values.c.value))


def list_parameter(values: Sequence[str] | Sequence[int], dialect: str) -> object:
    """Return a list as the database takes it: an array, or JSON text."""
    return list(values) if dialect == "postgresql" else orjson.dumps(values).decode()
