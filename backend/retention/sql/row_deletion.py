"""Deleting rows of any size, and conversations of any length, in short transactions."""

from collections.abc import Callable, Sequence
from itertools import islice

from sqlalchemy import ColumnElement, Connection, Delete, Table, Update, delete, select, tuple_, update

from backend.conversations.sql import tables
from backend.foundation.sql.database import Database
from backend.foundation.sql.short_transactions import DivisibleWork, run_in_short_transactions

WITHDRAWN = "withdrawn"
NOBODY = ""
"""The tenant of what is being deleted: no caller has an empty one."""

ROWS_AT_ONCE = {"sqlite": 1, "postgresql": 20}
"""What one statement deletes, and a transaction ends behind the statement in which its time is over.

A row may hold some megabytes. SQLite has one writer, and a statement takes no way; to PostgreSQL each is a way.
"""

RowChange = Callable[[Sequence[str]], Delete | Update]
"""Builds the statement for rows with these ids."""

_conversation = tables.conversation
IS_WITHDRAWN: ColumnElement[bool] = (_conversation.c.tenant == NOBODY) & (
    _conversation.c.running_response_id == WITHDRAWN
)

_PARTS: tuple[Table, ...] = (
    tables.waiting_turn,
    tables.seen_point,
    tables.model_call,
    tables.log_entry,
    tables.item,
    tables.removed_item,
    tables.prompt_header,
    tables.placed_text,
)


def withdraw(connection: Connection, which: ColumnElement[bool]) -> int:
    """Take conversations from everybody: nobody finds them, and no turn may begin on them; return how many there are.

    A turn that has read one before finds it held, as by another turn.
    """
    taken = {"tenant": NOBODY, "running_response_id": WITHDRAWN}
    return connection.execute(update(_conversation).where(which).values(taken)).rowcount


async def delete_conversation_rows(database: Database, conversation_id: str) -> None:
    """Delete a withdrawn conversation with all its rows; its own row goes last, by which it is found again."""
    await run_in_short_transactions(database, _without_parts(conversation_id, ROWS_AT_ONCE[database.dialect]))


async def change_rows(
    database: Database, ids: Sequence[str], change: Callable[[Sequence[str]], Delete | Update]
) -> int:
    """Run a statement over some ids at a time; return how many rows the statements have met."""
    return await run_in_short_transactions(database, _changed(ids, change, ROWS_AT_ONCE[database.dialect]))


def _without_parts(conversation_id: str, most: int) -> DivisibleWork[None]:
    connection = yield
    for table in _PARTS:
        key = tuple_(*table.primary_key.columns)
        some = select(*table.primary_key.columns).where(table.c.conversation_id == conversation_id).limit(most)
        while connection.execute(delete(table).where(key.in_(some))).rowcount == most:
            connection = yield
    connection.execute(delete(_conversation).where(_conversation.c.id == conversation_id, IS_WITHDRAWN))


def _changed(ids: Sequence[str], change: RowChange, most: int) -> DivisibleWork[int]:
    connection, left, changed = (yield), iter(ids), 0
    while some := tuple(islice(left, most)):
        changed += connection.execute(change(some)).rowcount
        connection = yield
    return changed
