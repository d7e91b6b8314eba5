"""Deleting a conversation of any length in short transactions."""

from sqlalchemy import ColumnElement, Connection, Table, delete, select, tuple_, update

from backend.conversations.sql import tables
from backend.foundation.sql.database import Database

WITHDRAWN = "withdrawn"
NOBODY = ""
"""The tenant of what is being deleted: no caller has an empty one."""

ROWS_AT_ONCE = 20
"""A row may hold a message of some megabytes, and a transaction must end within 50 ms."""

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
    for table in _PARTS:
        key = tuple_(*table.primary_key.columns)
        some = select(*table.primary_key.columns).where(table.c.conversation_id == conversation_id).limit(ROWS_AT_ONCE)
        step = delete(table).where(key.in_(some))
        while await database.write(lambda connection, step=step: connection.execute(step).rowcount) == ROWS_AT_ONCE:
            continue
    row = delete(_conversation).where(_conversation.c.id == conversation_id, IS_WITHDRAWN)
    await database.write(lambda connection: connection.execute(row))
