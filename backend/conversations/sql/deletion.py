"""Deleting conversations of any length: taken from everybody at once, and their rows deleted in short transactions."""

from collections.abc import Sequence

from sqlalchemy import Connection, select, update

from backend.conversations.sql import tables
from backend.conversations.sql.lanes import branches_of
from backend.conversations.sql.shared_statements import IS_CONVERSATION, IS_FREE, guard_error
from backend.foundation.sql.database import Database
from backend.foundation.sql.row_steps import delete_with_parts
from backend.foundation.sql.statements import Statement
from shared.errors import TurnRunning

_conversation = tables.conversation
_WITHDRAW = Statement(update(_conversation).where(IS_CONVERSATION, IS_FREE))
_WITHDRAWN = Statement(select(_conversation.c.id).where(tables.IS_WITHDRAWN))
_PARTS = (
    tables.waiting_turn,
    tables.seen_point,
    tables.model_call,
    tables.log_entry,
    tables.item,
    tables.removed_item,
    tables.prompt_header,
    tables.placed_text,
)


def withdraw(connection: Connection, conversation_id: str) -> Sequence[str]:
    """Take a conversation, and its creator's branches of it in lanes, from everybody; return the ids of all of them.

    Nobody finds them, and no turn may begin on them.

    Raises:
        TurnRunning: a turn holds one of them, or waits for it.
    """
    together = (conversation_id, *branches_of(connection, conversation_id))
    for each in together:
        if not _WITHDRAW.change(connection, {"where_id": each, **tables.WITHDRAWAL}):
            error = guard_error(connection, each)
            if isinstance(error, TurnRunning):
                raise error
    return together


def withdrawn_ids(connection: Connection) -> Sequence[str]:
    """Return the conversations that are taken from everybody, and whose rows are not all deleted."""
    return [row["id"] for row in _WITHDRAWN.rows(connection, {})]


async def delete_withdrawn(database: Database, conversation_id: str) -> None:
    """Delete all rows of a withdrawn conversation; no effect on any other."""
    which = (_conversation.c.id == conversation_id) & tables.IS_WITHDRAWN
    await delete_with_parts(database, _conversation, which, _PARTS)
