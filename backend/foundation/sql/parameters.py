"""Values as the database takes them: JSON text that is read as it was stored, byte for byte, and lists.

With a list as one parameter a statement is the same for every length, and is compiled once.
"""

from collections.abc import Sequence
from typing import Any, Literal

import orjson
from sqlalchemy import ARRAY, ColumnElement, Text, bindparam, func, select

from shared.errors import InvalidRequest

Dialect = Literal["sqlite", "postgresql"]


def to_json(value: object) -> str:
    """Write JSON text, keys in their order.

    Raises:
        InvalidRequest: half a character (a lone surrogate), or a number beyond 64 bits.
    """
    return json_text(value, 0)


def json_text(value: object, options: int) -> str:
    """Write JSON text with options of orjson; raises as `to_json` does."""
    try:
        return orjson.dumps(value, option=options).decode()
    except orjson.JSONEncodeError as error:
        raise InvalidRequest("A text or a number in the request cannot be written as JSON.") from error


def is_among(column: ColumnElement[Any], name: str, dialect: Dialect) -> ColumnElement[bool]:
    """Select the rows whose column is one of the parameter's values."""
    if dialect == "postgresql":
        return column == func.any(bindparam(name, type_=ARRAY(column.type)))
    values = func.json_each(bindparam(name, type_=Text())).table_valued("value")
    return column.in_(select(values.c.value))


def list_parameter(values: Sequence[str] | Sequence[int], dialect: str) -> object:
    """Return a list as the database takes it: an array, or JSON text."""
    return list(values) if dialect == "postgresql" else orjson.dumps(values).decode()
