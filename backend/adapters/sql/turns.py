"""What a turn writes, in SQL. `begin` and `finish` stand between a user and his answer: few statements each."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, insert, not_, select, update

from backend.adapters.sql import schema
from backend.adapters.sql.codec import (
    conversation_parameters,
    finish_parameters,
    response_parameters,
    to_json,
    to_response,
)
from backend.adapters.sql.database import Database
from backend.adapters.sql.writing import is_free, positions_are_free, refusal, write_rows
from backend.domain.conversation_log import Entry
from backend.domain.responses import FinishedTurn, ItemBody, NewTurn, StoredResponse
from shared.errors import TurnRunning

_conversation = schema.conversation
_response = schema.response
_replica = schema.replica

# Neither of these is a turn's to change.
_KEPT_BY_BEGIN = ("id", "tenant", "user_id", "created_at", "metadata")

_REPLICA_FORGOTTEN_AFTER = timedelta(days=1)


class SqlTurnStore:
    """The `TurnStore` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, turn: NewTurn) -> None:
        """Store a turn before its first request is sent, and take the conversation for it."""

        def work(connection: Connection) -> None:
            _take_conversation(connection, turn)
            with positions_are_free():
                write_rows(connection, turn.conversation.id, turn.entries, turn.items)
            connection.execute(insert(_response), response_parameters(turn.response))

        await self._database.write(work)

    async def append(self, conversation_id: str, expected_log_length: int, entries: Sequence[Entry]) -> None:
        """Append what a running turn has added; one whose conversation was taken from it cannot."""

        def work(connection: Connection) -> None:
            mine = (
                (_conversation.c.id == conversation_id)
                & _conversation.c.running_response_id.is_not(None)
                & (_conversation.c.log_length == expected_log_length)
            )
            length = expected_log_length + len(entries)
            if not connection.execute(update(_conversation).where(mine).values(log_length=length)).rowcount:
                raise TurnRunning("Another turn holds this conversation, or has just written to it.")
            with positions_are_free():
                write_rows(connection, conversation_id, entries, ())

        await self._database.write(work)

    async def checkpoint(self, response_id: str, output: Sequence[ItemBody], last_event: int) -> None:
        """Keep what a running turn has said so far; no effect once terminal."""
        partial_output = to_json(list(output))

        def work(connection: Connection) -> None:
            running = update(_response).where(_response.c.id == response_id, schema.IS_RUNNING)
            connection.execute(running.values(partial_output=partial_output, last_event=last_event))

        await self._database.write(work)

    async def finish(self, turn: FinishedTurn) -> bool:
        """Store the end of a turn and free the conversation; False when it had ended already."""

        def work(connection: Connection) -> bool:
            if not _end_response(connection, turn.response):
                return False
            _free_conversation(connection, turn)
            with positions_are_free():
                write_rows(connection, turn.response.conversation_id, turn.entries, turn.items)
            return True

        return await self._database.write(work)

    async def find(self, response_id: str) -> StoredResponse | None:
        """Return a response, or None when there is none or it was deleted."""

        def work(connection: Connection) -> StoredResponse | None:
            query = select(_response).where(_response.c.id == response_id, not_(_response.c.is_deleted))
            row = connection.execute(query).mappings().first()
            return to_response(row) if row is not None else None

        return await self._database.read(work)

    async def delete(self, response_id: str) -> None:
        """Make a response unretrievable; a running one goes on and leaves no response behind."""

        def work(connection: Connection) -> None:
            running = update(_response).where(_response.c.id == response_id, schema.IS_RUNNING)
            if not connection.execute(running.values(is_deleted=True)).rowcount:
                connection.execute(delete(_response).where(_response.c.id == response_id))

        await self._database.write(work)

    async def unfinished(self, *, alive_since: datetime | None) -> tuple[StoredResponse, ...]:
        """Return responses in progress whose replica has not been seen alive since that instant."""

        def work(connection: Connection) -> tuple[StoredResponse, ...]:
            query = select(_response).where(schema.IS_RUNNING).order_by(_response.c.created_at, _response.c.id)
            if alive_since is not None:
                alive = select(_replica.c.name).where(_replica.c.seen_at >= alive_since)
                query = query.where(_response.c.replica.not_in(alive))
            return tuple(to_response(row) for row in connection.execute(query).mappings())

        return await self._database.read(work)

    async def beat(self, replica: str, now: datetime) -> None:
        """Record that this replica lives."""

        def work(connection: Connection) -> None:
            known = update(_replica).where(_replica.c.name == replica).values(seen_at=now)
            if connection.execute(known).rowcount:
                return
            connection.execute(delete(_replica).where(_replica.c.seen_at < now - _REPLICA_FORGOTTEN_AFTER))
            connection.execute(insert(_replica), {"name": replica, "seen_at": now})

        await self._database.write(work)


def _take_conversation(connection: Connection, turn: NewTurn) -> None:
    parameters = conversation_parameters(turn.conversation)
    if turn.expected_log_length is None:
        connection.execute(insert(_conversation), parameters)
        return
    for column in _KEPT_BY_BEGIN:
        del parameters[column]
    change = update(_conversation).where(is_free(turn.conversation.id, turn.expected_log_length))
    if not connection.execute(change.values(**parameters)).rowcount:
        raise refusal(connection, turn.conversation.id)


def _end_response(connection: Connection, response: StoredResponse) -> bool:
    """Write the end; False when the response had ended. One that was deleted meanwhile goes for good."""
    running = update(_response).where(_response.c.id == response.id, schema.IS_RUNNING)
    ended = connection.execute(running.values(**finish_parameters(response)).returning(_response.c.is_deleted)).first()
    if ended is None:
        return False
    if ended.is_deleted:
        connection.execute(delete(_response).where(_response.c.id == response.id))
    return True


def _free_conversation(connection: Connection, turn: FinishedTurn) -> None:
    held = update(_conversation).where(
        _conversation.c.id == turn.response.conversation_id,
        _conversation.c.running_response_id == turn.response.id,
    )
    if turn.entries:
        held = held.where(_conversation.c.log_length == turn.entries[0].position)
    length = _conversation.c.log_length + len(turn.entries)
    if not connection.execute(held.values(running_response_id=None, log_length=length)).rowcount:
        raise TurnRunning("Another turn holds this conversation, or has just written to it.")
