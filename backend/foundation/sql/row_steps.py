"""Changing and deleting many rows of any size in short transactions."""

from collections.abc import Callable, Sequence
from itertools import islice

from sqlalchemy import ColumnElement, Connection, Delete, Table, Update, delete, select, tuple_

from backend.foundation.sql.database import Database
from backend.foundation.sql.short_transactions import DivisibleWork, run_in_short_transactions

ROWS_AT_ONCE = {"sqlite": 1, "postgresql": 20}
"""What one statement deletes, and a transaction ends behind the statement in which its time is over.

A row may hold some megabytes. SQLite has one writer, and a statement takes no way; to PostgreSQL each is a way.
"""

RowChange = Callable[[Sequence[str]], Delete | Update]
"""Builds the statement for rows with these ids."""


async def change_rows(database: Database, ids: Sequence[str], change: RowChange) -> int:
    """Run a statement over some ids at a time; return how many rows the statements have met."""
    return await run_in_short_transactions(database, _change(ids, change, ROWS_AT_ONCE[database.dialect]))


async def delete_with_parts(
    database: Database, whole: Table, which: ColumnElement[bool], parts: Sequence[Table]
) -> None:
    """Delete one row of `whole` behind all rows of its parts, by their column that is named after its table.

    Its own row goes last, by which it is found again where this does not come to its end. Each step takes hold of it
    first, so that of several processes at the same row one waits for the other.
    """
    work = _without_parts(whole, which, parts, ROWS_AT_ONCE[database.dialect])
    await run_in_short_transactions(database, work)


def _without_parts(whole: Table, which: ColumnElement[bool], parts: Sequence[Table], most: int) -> DivisibleWork[None]:
    connection = yield
    for table in parts:
        while (row_id := _hold(connection, whole, which)) is not None:
            key = tuple_(*table.primary_key.columns)
            is_part = table.c[f"{whole.name}_id"] == row_id
            some = select(*table.primary_key.columns).where(is_part).limit(most)
            if connection.execute(delete(table).where(key.in_(some))).rowcount < most:
                break
            connection = yield
    connection.execute(delete(whole).where(which))


def _hold(connection: Connection, whole: Table, which: ColumnElement[bool]) -> str | None:
    return connection.execute(select(whole.c.id).where(which).with_for_update()).scalar_one_or_none()


def _change(ids: Sequence[str], change: RowChange, most: int) -> DivisibleWork[int]:
    connection, left, changed = (yield), iter(ids), 0
    while some := tuple(islice(left, most)):
        changed += connection.execute(change(some)).rowcount
        connection = yield
    return changed
