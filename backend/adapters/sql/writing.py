"""Statements that the stores of conversations and turns share."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from sqlalchemy import ColumnElement, Connection, and_, exists, insert, literal, select
from sqlalchemy.exc import IntegrityError

from backend.adapters.sql import schema
from backend.adapters.sql.codec import entry_parameters, item_parameters
from backend.domain.conversation_log import Entry
from backend.domain.responses import Item
from shared.errors import Conflict, NotFound, TurnRunning

_conversation = schema.conversation


def write_rows(connection: Connection, conversation_id: str, entries: Sequence[Entry], items: Sequence[Item]) -> None:
    """Insert log entries and items; a position that is taken is an IntegrityError."""
    if entries:
        connection.execute(insert(schema.log_entry), entry_parameters(conversation_id, entries))
    if items:
        connection.execute(insert(schema.item), item_parameters(conversation_id, items))


def is_free(conversation_id: str, log_length: int) -> ColumnElement[bool]:
    """The guard of every append: nobody runs, and the log measures what the writer believes."""
    return and_(
        _conversation.c.id == conversation_id,
        _conversation.c.running_response_id.is_(None),
        _conversation.c.log_length == log_length,
    )


def refusal(connection: Connection, conversation_id: str) -> Conflict | NotFound:
    """Say why a guard let nothing through."""
    is_there = exists().where(_conversation.c.id == conversation_id)
    if connection.execute(select(literal(1)).where(is_there)).first() is None:
        return NotFound("There is no such conversation.")
    return TurnRunning("Another turn holds this conversation, or has just written to it.")


@contextmanager
def positions_are_free() -> Generator[None]:
    """Report a position that somebody else took as a turn that runs."""
    try:
        yield
    except IntegrityError as error:
        raise TurnRunning("Another writer has just written to this conversation.") from error
