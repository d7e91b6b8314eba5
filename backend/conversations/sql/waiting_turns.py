"""Turns that wait for their conversation, in a SQL database."""

from collections.abc import Sequence

from sqlalchemy import Connection, Integer, bindparam, delete, func, insert, select, update

from backend.conversations.domain.responses import Exchange, StoredResponse
from backend.conversations.domain.waiting_turns import Entered, IfRunning, WaitingTurn
from backend.conversations.sql import tables
from backend.conversations.sql.codec import (
    encode_waiting,
    response_parameters,
    to_entered,
    to_remains,
    to_waiting_turn,
)
from backend.foundation.sql.database import Database
from backend.foundation.sql.idempotency import take_key
from backend.foundation.sql.statements import Statement
from shared.errors import NoLongerWaiting, NotFound, TooManyRequests

_conversation, _response, _waiting = tables.conversation, tables.response, tables.waiting_turn
_before = _waiting.alias("before")

FIRST_OF_NEXT = -(2**30)
"""The places of turns that come next begin here, those of turns that merely wait at 0."""

_waits = _waiting.c.entered_id.is_(None)
_is_waiting = (_waiting.c.id == bindparam("where_id")) & _waits
_is_of_conversation = _waiting.c.conversation_id == bindparam("where_conversation_id")
_is_first = (
    ~select(_before.c.id)
    .where(
        _before.c.conversation_id == _waiting.c.conversation_id,
        _before.c.entered_id.is_(None),
        _before.c.place < _waiting.c.place,
    )
    .exists()
)

# Who adds or begins a turn holds the row of its conversation, so that places are given once.
_HOLD = Statement(
    select(_conversation.c.running_response_id)
    .where(_conversation.c.id == bindparam("where_conversation_id"))
    .with_for_update()
)
_COUNT = Statement(select(func.count().label("waiting")).select_from(_waiting).where(_is_of_conversation, _waits))
_NEWEST_PLACE = Statement(
    select(func.max(_waiting.c.place).label("newest")).where(
        _is_of_conversation,
        _waiting.c.place >= bindparam("least", type_=Integer),
        _waiting.c.place < bindparam("beyond", type_=Integer),
    )
)
_ADD = Statement(insert(_waiting))
_FIND = Statement(select(_waiting).where(_is_waiting))
_DELETE = Statement(delete(_waiting).where(_is_waiting))
TAKE_FIRST = Statement(delete(_waiting).where(_is_waiting, _is_first))
"""Takes a turn out of those that wait, where it comes next; its parameter is `where_id`."""

# Turns that cannot begin now, because their caller has no place for them, must not hide those of others.
_STARTABLE = Statement(
    select(_waiting.c.id)
    .join(_conversation, _conversation.c.id == _waiting.c.conversation_id)
    .where(_waits, _conversation.c.running_response_id.is_(None), _is_first)
    .order_by(func.random())
    .limit(bindparam("most", type_=Integer))
)
_TO_BE_CANCELLED = Statement(
    select(_conversation.c.running_response_id)
    .join(_waiting, _conversation.c.id == _waiting.c.conversation_id)
    .where(_waits, _waiting.c.if_running == IfRunning.CANCEL.value, _conversation.c.running_response_id.is_not(None))
    .distinct()
)
# A message enters no turn of another user: a turn uses knowledge with the rights of the user who asked for it.
_is_steered = (
    (_waiting.c.if_running == IfRunning.STEER.value)
    & (_response.c.tenant == _waiting.c.tenant)
    & (_response.c.user_id == _waiting.c.user_id)
)
_steered = _conversation.join(_response, _response.c.id == _conversation.c.running_response_id).join(
    _waiting, _conversation.c.id == _waiting.c.conversation_id
)
_TO_BE_STEERED = Statement(select(_response.c.id).select_from(_steered).where(_waits, _is_steered).distinct())
_STEERING = Statement(
    select(_waiting)
    .select_from(_steered)
    .where(_waits, _is_steered, _response.c.id == bindparam("where_response_id"))
    .order_by(_waiting.c.place)
)
_ENTER = Statement(update(_waiting).where(_is_waiting))
_ENTERED_IN = Statement(select(_waiting.c.entered_id).where(_waiting.c.id == bindparam("where_id")))
_ENTERED = Statement(
    select(_waiting.c.entered_id, _waiting.c.entered_at, _waiting.c.input_items)
    .where(_waiting.c.entered_id == bindparam("where_response_id"))
    .order_by(_waiting.c.entered_at, _waiting.c.place)
)
_INSERT_RESPONSE = Statement(insert(_response))


class SqlWaitingTurnStore:
    """Implements `WaitingTurnStore` with a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, waiting: WaitingTurn, most: int) -> str | None:
        """Store a turn that waits; return the id of the response whose turn holds the conversation."""
        parameters = encode_waiting(waiting)
        of_conversation = {"where_conversation_id": waiting.response.conversation_id}

        def work(connection: Connection) -> str | None:
            take_key(connection, waiting.claim)
            held = _HOLD.first(connection, of_conversation)
            if held is None:
                raise NotFound("The conversation was deleted.", param="conversation")
            counted = _COUNT.first(connection, of_conversation)
            if counted is not None and counted["waiting"] >= most:
                message = f"{most} turns wait for this conversation, which is the most; wait until one has begun."
                raise TooManyRequests(message, param="if_running", retry_after_seconds=1)
            place = _next_place(connection, waiting)
            _ADD.change(connection, {**parameters, "place": place})
            return held["running_response_id"]

        return await self._database.write(work)

    async def startable(self, limit: int) -> tuple[str, ...]:
        """Return the ids of turns that come next in conversations that no turn holds."""
        rows = await self._database.read(lambda connection: _STARTABLE.rows(connection, {"most": limit}))
        return tuple(row["id"] for row in rows)

    async def find(self, response_id: str) -> WaitingTurn | None:
        """Return a turn that waits; None where it does not any more."""
        row = await self._database.find(_FIND, {"where_id": response_id})
        return to_waiting_turn(row) if row is not None else None

    async def remains(self, response_id: str) -> StoredResponse | None:
        """Return what the row of a waiting turn has of its response, readable or not."""
        row = await self._database.find(_FIND, {"where_id": response_id})
        return to_remains(row) if row is not None else None

    async def to_be_cancelled(self) -> Sequence[str]:
        """Return the ids of the responses whose turns others want stopped that come next."""
        rows = await self._database.read(lambda connection: _TO_BE_CANCELLED.rows(connection, {}))
        return [row["running_response_id"] for row in rows]

    async def to_be_steered(self) -> Sequence[str]:
        """Return the ids of the responses that messages wait for."""
        rows = await self._database.read(lambda connection: _TO_BE_STEERED.rows(connection, {}))
        return [row["id"] for row in rows]

    async def find_steering(self, response: StoredResponse) -> tuple[WaitingTurn, ...]:
        """Return the waiting turns whose messages may enter the turn of a response."""
        which = {"where_response_id": response.id}
        rows = await self._database.read(lambda connection: _STEERING.rows(connection, which))
        return tuple(map(to_waiting_turn, rows))

    async def find_entered(self, response_id: str) -> tuple[Entered, ...]:
        """Return the messages that have entered a turn."""
        which = {"where_response_id": response_id}
        rows = await self._database.read(lambda connection: _ENTERED.rows(connection, which))
        return tuple(map(to_entered, rows))

    async def withdraw(self, ended: StoredResponse) -> bool:
        """Store the end of a turn that has not begun; False where it does not wait any more."""
        row = response_parameters(ended)

        def work(connection: Connection) -> bool:
            if not _DELETE.change(connection, {"where_id": ended.id}):
                return False
            _INSERT_RESPONSE.change(connection, row)
            return True

        return await self._database.write(work)


def find_waiting(connection: Connection, response_id: str) -> StoredResponse | None:
    """Return the response of a turn that waits; None where there is none of this id."""
    row = _FIND.first(connection, {"where_id": response_id})
    return to_waiting_turn(row).response if row is not None else None


def find_entered_in(connection: Connection, response_id: str) -> str | None:
    """Return the id of the response whose turn the message of a waiting turn has entered; None where it has not."""
    row = _ENTERED_IN.first(connection, {"where_id": response_id})
    return row["entered_id"] if row is not None else None


def enter(connection: Connection, response_id: str, exchange: Exchange) -> None:
    """Note that the messages of waiting turns have entered the turn of a response.

    Raises:
        NoLongerWaiting: one does not wait any more.
    """
    for waiting_id in exchange.steered_by:
        # What is needed to begin it is not kept: it never will.
        entered = {"entered_id": response_id, "entered_at": len(exchange.output), "asked": ""}
        if not _ENTER.change(connection, {"where_id": waiting_id, **entered}):
            raise NoLongerWaiting("The message has been withdrawn.")


def _next_place(connection: Connection, waiting: WaitingTurn) -> int:
    """Return the place behind all others of its kind; the row of the conversation is held."""
    least, beyond = (FIRST_OF_NEXT, 0) if waiting.if_running.comes_next else (0, 2**31 - 1)
    which = {"where_conversation_id": waiting.response.conversation_id, "least": least, "beyond": beyond}
    found = _NEWEST_PLACE.first(connection, which)
    newest = found["newest"] if found is not None else None
    return least if newest is None else newest + 1
