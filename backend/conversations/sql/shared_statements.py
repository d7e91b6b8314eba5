"""Statements and errors that the stores of conversations and of turns share.

An UPDATE sets the columns that its parameters name; parameters of its WHERE start with `where_`.
"""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from sqlalchemy import ColumnElement, Connection, bindparam, insert, select
from sqlalchemy.exc import IntegrityError

from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.responses import Item
from backend.conversations.sql import tables
from backend.conversations.sql.codec import entry_parameters, item_parameters
from backend.foundation.sql.statements import Change, Statement, change_together
from shared.errors import Conflict, NotFound, TurnRunning

_conversation = tables.conversation

IS_CONVERSATION: ColumnElement[bool] = _conversation.c.id == bindparam("where_id")
HAS_LENGTH: ColumnElement[bool] = _conversation.c.log_length == bindparam("where_log_length")
_waiting = tables.waiting_turn
_none_waits = (
    ~select(_waiting.c.id)
    .where(_waiting.c.conversation_id == _conversation.c.id, _waiting.c.entered_id.is_(None))
    .exists()
)
IS_NOT_HELD: ColumnElement[bool] = _conversation.c.running_response_id.is_(None)
IS_FREE: ColumnElement[bool] = IS_NOT_HELD & _none_waits
"""No turn holds the conversation, and none waits for it: whatever was acknowledged comes first."""

_INSERT_ENTRY = Statement(insert(tables.log_entry))
_INSERT_ITEM = Statement(insert(tables.item))
_FIND_ID = Statement(select(_conversation.c.id).where(IS_CONVERSATION, ~tables.IS_WITHDRAWN))


def write_rows(connection: Connection, conversation_id: str, entries: Sequence[Entry], items: Sequence[Item]) -> None:
    """Insert log entries and items.

    Raises:
        TurnRunning: another writer has inserted a row at one of the positions.
    """
    with positions_are_free():
        change_together(connection, new_rows(conversation_id, entries, items))


def new_rows(conversation_id: str, entries: Sequence[Entry], items: Sequence[Item]) -> list[Change]:
    """Return the insertions of log entries and items."""
    return [
        Change(_INSERT_ENTRY, entry_parameters(conversation_id, entries)),
        Change(_INSERT_ITEM, item_parameters(conversation_id, items)),
    ]


def guard_error(connection: Connection, *conversation_ids: str) -> Conflict | NotFound:
    """Return the error for guarded statements one of which matched no conversation."""
    for conversation_id in conversation_ids:
        if _FIND_ID.first(connection, {"where_id": conversation_id}) is None:
            return NotFound("There is no such conversation.")
    return build_held_error()


def build_held_error() -> TurnRunning:
    """Return the error for a conversation in which another turn runs or has written."""
    return TurnRunning("Another turn holds this conversation, or has just written to it.")


@contextmanager
def positions_are_free() -> Generator[None]:
    """Raise `TurnRunning` where another writer has inserted a row at one of the positions."""
    try:
        yield
    except (IntegrityError, sqlite3.IntegrityError) as error:
        raise build_held_error() from error
