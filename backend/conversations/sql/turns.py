"""The records of turns in a SQL database. A user waits for `begin` and `finish`, so both run few statements."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, delete, insert, not_, select, update

from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.model_calls import NO_CALLS, CallsMade, ModelCall
from backend.conversations.domain.responses import Checkpoint, FinishedTurn, NewTurn, StoredResponse
from backend.conversations.sql import tables
from backend.conversations.sql.codec import (
    Parameters,
    conversation_parameters,
    finish_parameters,
    response_parameters,
    to_json,
    to_response,
)
from backend.conversations.sql.model_calls import add_calls, delete_calls, read_calls, write_calls
from backend.conversations.sql.shared_statements import (
    HAS_LENGTH,
    IS_CONVERSATION,
    IS_FREE,
    guard_error,
    held_by_another,
    write_rows,
)
from backend.foundation.sql.database import Database
from backend.foundation.sql.idempotency import take_key
from backend.foundation.sql.statements import Row, Statement
from shared.errors import CorruptRecord

_conversation = tables.conversation
_response = tables.response
_replica = tables.replica

_IS_RESPONSE = _response.c.id == bindparam("where_response_id")
_IS_REPLICA = _replica.c.name == bindparam("where_name")

_INSERT_CONVERSATION = Statement(insert(_conversation))
_TAKE = Statement(update(_conversation).where(IS_CONVERSATION, IS_FREE, HAS_LENGTH))
_GROW = Statement(
    update(_conversation).where(IS_CONVERSATION, _conversation.c.running_response_id.is_not(None), HAS_LENGTH)
)
_is_held = _conversation.c.running_response_id == bindparam("where_response_id")
_FREE = Statement(update(_conversation).where(IS_CONVERSATION, _is_held))
_GROW_AND_FREE = Statement(update(_conversation).where(IS_CONVERSATION, _is_held, HAS_LENGTH))

_running = select(_response).where(tables.IS_RUNNING).order_by(_response.c.created_at, _response.c.id)
_change_running = update(_response).where(_IS_RESPONSE, tables.IS_RUNNING)
_seen = select(_replica.c.name).where(_replica.c.seen_at >= bindparam("where_seen_at"))
_INSERT_RESPONSE = Statement(insert(_response))
_FIND = Statement(select(_response).where(_IS_RESPONSE, not_(_response.c.is_deleted)))
_CHANGE_RUNNING = Statement(_change_running)
_END_RUNNING = Statement(_change_running.returning(_response.c.is_deleted))
_DELETE = Statement(delete(_response).where(_IS_RESPONSE))
_RUNNING = Statement(_running)
_ABANDONED = Statement(_running.where(_response.c.replica.not_in(_seen)))

_BEAT = Statement(update(_replica).where(_IS_REPLICA))
_FIRST_BEAT = Statement(insert(_replica))
_FORGET_REPLICAS = Statement(delete(_replica).where(_replica.c.seen_at < bindparam("where_seen_at")))

# Columns that the beginning of a turn must not change.
_KEPT_BY_BEGIN = ("id", "tenant", "user_id", "created_at", "metadata", "sent_prompt")

_CHECKPOINT_TIMEOUT_SECONDS = 10.0
_REPLICA_FORGOTTEN_AFTER = timedelta(days=1)


class SqlTurnStore:
    """Implements `TurnStore` with a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, turn: NewTurn) -> None:
        """Store a turn before its first request is sent, and lock the conversation for it."""

        def work(connection: Connection) -> None:
            take_key(connection, turn.claim)
            _take_conversation(connection, turn)
            write_rows(connection, turn.conversation.id, turn.entries, turn.items)
            _INSERT_RESPONSE.change(connection, response_parameters(turn.response))

        await self._database.write(work)

    async def append(
        self, conversation_id: str, expected_log_length: int, entries: Sequence[Entry], calls: CallsMade = NO_CALLS
    ) -> None:
        """Append the entries and calls of a running turn; it fails where the turn no longer holds the conversation."""
        growth: Parameters = {
            "where_id": conversation_id,
            "where_log_length": expected_log_length,
            "log_length": expected_log_length + len(entries),
            **_sent_prompt(calls),
        }

        def work(connection: Connection) -> None:
            if not _GROW.change(connection, growth):
                raise held_by_another()
            write_rows(connection, conversation_id, entries, ())
            write_calls(connection, calls)

        await self._database.write(work)

    async def checkpoint_many(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Store the outputs of running turns so far; no effect once a status is terminal."""
        alone = [(_checkpoint_change(each), each.calls) for each in checkpoints if each.calls.calls]
        together = [_checkpoint_change(each) for each in checkpoints if not each.calls.calls]

        def work(connection: Connection) -> None:
            if together:
                _CHANGE_RUNNING.change(connection, *together)
            for change, calls in alone:
                if _CHANGE_RUNNING.change(connection, change):
                    add_calls(connection, calls)

        await self._database.write(work, timeout_seconds=_CHECKPOINT_TIMEOUT_SECONDS)

    async def finish(self, turn: FinishedTurn) -> bool:
        """Store the end of a turn and unlock the conversation; return False when the turn had ended already."""

        def work(connection: Connection) -> bool:
            is_deleted = _end_response(connection, turn.response)
            if is_deleted is None:
                return False
            _free_conversation(connection, turn)
            write_rows(connection, turn.response.conversation_id, turn.entries, turn.items)
            if not is_deleted:
                write_calls(connection, turn.calls)
            return True

        return await self._database.write(work)

    async def find(self, response_id: str) -> StoredResponse | None:
        """Return a response, or None when there is none or it was deleted."""
        row = await self._database.find(_FIND, {"where_response_id": response_id})
        return to_response(row) if row is not None else None

    async def model_calls(self, response_id: str) -> tuple[ModelCall, ...]:
        """Return the stored model calls of a turn, in order."""
        return await self._database.read(lambda connection: read_calls(connection, response_id))

    async def delete(self, response_id: str) -> None:
        """Delete a response; a running turn continues, and its response is deleted when it ends."""

        def work(connection: Connection) -> None:
            named = {"where_response_id": response_id}
            if not _CHANGE_RUNNING.change(connection, {**named, "is_deleted": True}):
                _delete_response(connection, response_id)

        await self._database.write(work)

    async def unfinished(self, *, alive_since: datetime | None) -> tuple[StoredResponse, ...]:
        """Return the running responses whose replica has not recorded that it is alive since that instant."""
        query, parameters = (_RUNNING, {}) if alive_since is None else (_ABANDONED, {"where_seen_at": alive_since})
        return await self._database.read(
            lambda connection: tuple(_readable_responses(query.rows(connection, parameters)))
        )

    async def beat(self, replica: str, now: datetime) -> None:
        """Record that this replica is alive; the first record of a replica deletes those that are a day old."""

        def work(connection: Connection) -> None:
            if _BEAT.change(connection, {"where_name": replica, "seen_at": now}):
                return
            _FORGET_REPLICAS.change(connection, {"where_seen_at": now - _REPLICA_FORGOTTEN_AFTER})
            _FIRST_BEAT.change(connection, {"name": replica, "seen_at": now})

        await self._database.write(work)


def _readable_responses(rows: Iterable[Row]) -> Generator[StoredResponse]:
    """Read what can be read: a damaged row must not keep the turns of the others from being closed."""
    for row in rows:
        with suppress(CorruptRecord):
            yield to_response(row)


def _checkpoint_change(checkpoint: Checkpoint) -> Parameters:
    return {
        "where_response_id": checkpoint.response_id,
        "partial_output": to_json(list(checkpoint.output)),
        "last_event": checkpoint.last_event,
    }


def _take_conversation(connection: Connection, turn: NewTurn) -> None:
    parameters = conversation_parameters(turn.conversation)
    if turn.expected_log_length is None:
        _INSERT_CONVERSATION.change(connection, parameters)
        return
    for column in _KEPT_BY_BEGIN:
        del parameters[column]
    parameters["where_id"] = turn.conversation.id
    parameters["where_log_length"] = turn.expected_log_length
    if not _TAKE.change(connection, parameters):
        raise guard_error(connection, turn.conversation.id)


def _end_response(connection: Connection, response: StoredResponse) -> bool | None:
    """Write the end of a response and return whether it was deleted meanwhile, which removes its row.

    Return None when the response had ended already.
    """
    ended = _END_RUNNING.first(connection, {"where_response_id": response.id, **finish_parameters(response)})
    if ended is None:
        return None
    if ended["is_deleted"]:
        _delete_response(connection, response.id)
    return bool(ended["is_deleted"])


def _delete_response(connection: Connection, response_id: str) -> None:
    _DELETE.change(connection, {"where_response_id": response_id})
    delete_calls(connection, response_id)


def _sent_prompt(calls: CallsMade) -> Parameters:
    return {"sent_prompt": calls.sent.model_dump_json()} if calls.sent is not None else {}


def _free_conversation(connection: Connection, turn: FinishedTurn) -> None:
    parameters: Parameters = {
        "where_id": turn.response.conversation_id,
        "where_response_id": turn.response.id,
        "running_response_id": None,
        **_sent_prompt(turn.calls),
    }
    if turn.entries:
        position = turn.entries[0].position
        parameters |= {"where_log_length": position, "log_length": position + len(turn.entries)}
    statement = _GROW_AND_FREE if turn.entries else _FREE
    if not statement.change(connection, parameters):
        raise held_by_another()
