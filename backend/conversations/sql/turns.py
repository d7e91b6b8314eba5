"""The records of turns in a SQL database. A user waits for `begin` and `finish`, so both run few statements."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar, get_args

from sqlalchemy import ColumnElement, Connection, Integer, Text, bindparam, case, delete, insert, not_, select, update

from backend.conversations.domain.leases import LeaseTerms, TakenTurn
from backend.conversations.domain.model_calls import CallsMade, ModelCall
from backend.conversations.domain.responses import (
    Checkpoint,
    Exchange,
    FinishedTurn,
    Hold,
    NewTurn,
    SettingsDigest,
    StoredResponse,
)
from backend.conversations.sql import tables
from backend.conversations.sql.codec import (
    Parameters,
    conversation_parameters,
    finish_parameters,
    response_parameters,
    to_json,
    to_response,
)
from backend.conversations.sql.leases import find_running_ids, release, renew, take_abandoned, take_again, take_all
from backend.conversations.sql.model_calls import (
    add_calls,
    add_texts,
    delete_calls,
    read_calls,
    read_texts,
    write_calls,
)
from backend.conversations.sql.seen_points import newest_seen, write_seen
from backend.conversations.sql.shared_statements import (
    HAS_LENGTH,
    IS_CONVERSATION,
    IS_FREE,
    IS_NOT_HELD,
    build_held_error,
    guard_error,
    new_rows,
    positions_are_free,
)
from backend.conversations.sql.waiting_turns import TAKE_FIRST, enter, find_entered_in, find_waiting
from backend.foundation.sql.database import (
    DEFAULT_TIMEOUT_SECONDS,
    FIND_TIMEOUT_SECONDS,
    Database,
    compute_off_event_loop,
)
from backend.foundation.sql.idempotency import build_claim, check_key
from backend.foundation.sql.parameters import Dialect, is_among, list_parameter
from backend.foundation.sql.statements import Change, NothingMet, Statement, change_together
from shared.errors import TurnTaken

Result = TypeVar("Result")

_conversation = tables.conversation
_response = tables.response

_IS_RESPONSE = _response.c.id == bindparam("where_response_id")

_INSERT_CONVERSATION = Statement(insert(_conversation))
_TAKE = Statement(update(_conversation).where(IS_CONVERSATION, IS_FREE, HAS_LENGTH))
_TAKE_NEXT = Statement(update(_conversation).where(IS_CONVERSATION, IS_NOT_HELD, HAS_LENGTH))
_GROW = Statement(
    update(_conversation).where(IS_CONVERSATION, _conversation.c.running_response_id.is_not(None), HAS_LENGTH)
)
_HAS_GROWN = Statement(select(_conversation.c.id).where(IS_CONVERSATION, HAS_LENGTH))
_is_held = _conversation.c.running_response_id == bindparam("where_response_id")
_FREE = Statement(update(_conversation).where(IS_CONVERSATION, _is_held))
_GROW_AND_FREE = Statement(update(_conversation).where(IS_CONVERSATION, _is_held, HAS_LENGTH))

_change_running = update(_response).where(_IS_RESPONSE, tables.IS_RUNNING)
_has_fence = _response.c.fence == bindparam("where_fence")
_change_held = _change_running.where(_has_fence)
_output: ColumnElement[str | None] = bindparam("output", type_=Text())
_newest: ColumnElement[int] = bindparam("newest", type_=Integer())
_is_newer = _response.c.last_event < _newest
_INSERT_RESPONSE = Statement(insert(_response))
_seen = tables.seen_point
_FIND = Statement(
    select(_response, _seen.c.digest.label("seen"))
    .outerjoin(_seen, _seen.c.response_id == _response.c.id)
    .where(_IS_RESPONSE, not_(_response.c.is_deleted))
)
_CHANGE_RUNNING = Statement(_change_running)
_FIND_HELD = {
    dialect: Statement(
        select(_response.c.id, _response.c.fence).where(is_among(_response.c.id, "ids", dialect), tables.IS_RUNNING)
    )
    for dialect in get_args(Dialect)
}
# Checkpoints and exchanges of a turn may arrive in another order than they were made: the output only grows.
_newer_output = {
    "partial_output": case((_is_newer, _output), else_=_response.c.partial_output),
    "last_event": case((_is_newer, _newest), else_=_response.c.last_event),
}
_CHECKPOINT = Statement(_change_held.values(**_newer_output))
_SETTLE = Statement(_change_held.values(**_newer_output, settled_event=_newest))
_END_HELD = Statement(_change_held.returning(_response.c.is_deleted))
_END_SHOWN = Statement(_change_held.where(not_(_response.c.is_deleted)))
_DELETE = Statement(delete(_response).where(_IS_RESPONSE))
_entry = tables.log_entry
_OWN_LABEL = select(_response.c.label).where(_IS_RESPONSE).scalar_subquery()
_TAKE_LABEL = Statement(
    update(_entry)
    .where(_entry.c.conversation_id == bindparam("where_id"), _entry.c.turn_id == bindparam("where_response_id"))
    .where(tables.HAS_LABEL)
    .values(label=_OWN_LABEL)
)

# Columns that the beginning of a turn must not change.
_KEPT_BY_BEGIN = ("id", "tenant", "user_id", "created_at", "metadata", "sent_prompt", "members")

_CHECKPOINT_TIMEOUT_SECONDS = 10.0

_SHORT_CHARACTERS = 100_000
"""Input that is decoded within a millisecond; that of images may be hundreds of times as long."""


class SqlTurnStore:
    """Implements `TurnStore` with a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, turn: NewTurn) -> None:
        """Store a turn before its first request is sent, and lock the conversation for it."""
        await self.begin_together((turn,))

    async def begin_together(self, turns: Sequence[NewTurn]) -> None:
        """Store turns in different conversations, all or none."""
        # In one order for all, so that two requests over the same conversations do not wait for each other.
        rows = [row for turn in sorted(turns, key=lambda turn: turn.conversation.id) for row in _rows_of(turn)]
        claim = next((turn.claim for turn in turns if turn.claim is not None), None)
        taken_ids = [turn.conversation.id for turn in turns if turn.expected_log_length is not None]

        def find_reason(connection: Connection) -> Exception:
            check_key(connection, claim)
            return guard_error(connection, *taken_ids)

        try:
            with positions_are_free():
                await self._database.change([*build_claim(claim), *rows])
        except NothingMet:
            raise await self._database.read(find_reason) from None

    async def append(self, hold: Hold, expected_log_length: int, exchange: Exchange) -> None:
        """Append an exchange of a running turn; it fails where another process has taken the turn over."""
        growth: Parameters = {
            "where_id": hold.conversation_id,
            "where_log_length": expected_log_length,
            "log_length": expected_log_length + len(exchange.entries),
            **({"epoch": exchange.entries[-1].epoch} if exchange.entries else {}),
            **_encode_sent_prompt(exchange.calls),
        }
        settled = {"newest": exchange.last_event, "output": to_json(list(exchange.output))}

        def work(connection: Connection) -> None:
            # The row is locked until the commit, so that who takes the turn over sees either all of this or nothing.
            if not _SETTLE.change(connection, {**_encode_hold(hold), **settled}):
                raise _build_taken_error()
            if not _GROW.change(connection, growth):
                grown: Parameters = {"where_id": hold.conversation_id, "where_log_length": growth["log_length"]}
                if _HAS_GROWN.first(connection, grown) is not None:
                    return  # an earlier attempt has stored it: nobody else appends while this turn is held
                raise build_held_error()
            enter(connection, hold.response_id, exchange)
            rows = new_rows(hold.conversation_id, exchange.entries, ())
            with positions_are_free():
                change_together(connection, [*rows, *write_calls(exchange.calls)])

        await self._database.write(work)

    async def checkpoint_many(self, checkpoints: Sequence[Checkpoint]) -> frozenset[str]:
        """Store the outputs of running turns so far; return the ids of those that have ended or were taken over."""
        alone = [each for each in checkpoints if each.calls.calls]
        together = [_checkpoint_change(each) for each in checkpoints if not each.calls.calls]

        def work(connection: Connection) -> frozenset[str]:
            lost: set[str] = set()
            if together:
                _CHECKPOINT.change(connection, *together)
                lost.update(_no_longer_held(connection, [each.hold for each in checkpoints if not each.calls.calls]))
            for each in alone:
                if _CHECKPOINT.change(connection, _checkpoint_change(each)):
                    add_calls(connection, each.calls)
                else:
                    lost.add(each.hold.response_id)
            return frozenset(lost)

        return await self._database.write(work, timeout_seconds=_CHECKPOINT_TIMEOUT_SECONDS)

    async def finish(self, turn: FinishedTurn) -> bool:
        """Store the end of a turn and unlock the conversation; return False where it was ended or taken before."""
        response = turn.response
        if response.is_restricted:
            return await self._database.write(partial(_finish_in_steps, turn=turn))
        ended = Change(_END_SHOWN, [{**_encode_hold(response.hold), **finish_parameters(response)}], must_meet=True)
        freed = _free_conversation(turn)._replace(must_meet=True)
        try:
            with positions_are_free():
                await self._database.change([ended, freed, *_log_rows(turn), *_write_shown(turn)])
        except NothingMet:
            return await self._database.write(partial(_finish_in_steps, turn=turn))
        return True

    async def find(self, response_id: str) -> StoredResponse | None:
        """Return a response, or None when there is none or it was deleted."""

        def work(connection: Connection) -> StoredResponse | None:
            named = {"where_response_id": response_id}
            row = _FIND.first(connection, named)
            if row is None and (waiting := find_waiting(connection, response_id)) is not None:
                return waiting
            # One that has begun between the two looks is found by a third, as is the one that it has entered.
            other = (
                {"where_response_id": find_entered_in(connection, response_id) or response_id} if row is None else named
            )
            row = row or _FIND.first(connection, other)
            if row is None:
                return None
            if len(row["input_items"]) <= _SHORT_CHARACTERS:
                return to_response(row)
            return compute_off_event_loop(connection, partial(to_response, row))

        return await self._database.read(work, timeout_seconds=FIND_TIMEOUT_SECONDS)

    async def newest_seen(self, digests: Sequence[str], wanted: SettingsDigest) -> Mapping[str, str]:
        """Return the response to go on from at each of these chains, by the chain."""
        return await self._database.read(lambda connection: newest_seen(connection, digests, wanted))

    async def model_calls(self, response_id: str) -> tuple[ModelCall, ...]:
        """Return the stored model calls of a turn, in order."""
        return await self._database.read(lambda connection: read_calls(connection, response_id))

    async def find_placed_texts(self, conversation_id: str, digests: Collection[str]) -> Mapping[str, str]:
        """Return the texts that requests of a conversation hold outside of its log, by their digests."""
        if not digests:
            return {}
        return await self._database.read(lambda connection: read_texts(connection, conversation_id, digests))

    async def delete(self, response_id: str) -> None:
        """Delete a response; a running turn continues, and its response is deleted when it ends."""

        def work(connection: Connection) -> None:
            named = {"where_response_id": response_id}
            if not _CHANGE_RUNNING.change(connection, {**named, "is_deleted": True}):
                _delete_response(connection, response_id)

        await self._database.write(work)

    async def renew(self, replica: str, terms: LeaseTerms) -> None:
        """Extend the lease of this replica on its turns."""
        await self._database.write_apart(
            lambda connection: renew(connection, replica, terms), timeout_seconds=terms.renewal_seconds
        )

    async def take_abandoned(self, replica: str, terms: LeaseTerms, limit: int) -> tuple[TakenTurn, ...]:
        """Take over turns of other replicas whose lease has expired, or which were released."""
        return await self._apart(lambda connection: take_abandoned(connection, replica, terms, limit))

    async def find_running_ids(self, replica: str) -> frozenset[str]:
        """Return the ids of the running turns that a replica holds."""
        return await self._apart(lambda connection: find_running_ids(connection, replica))

    async def take_again(self, replica: str, ids: Sequence[str]) -> tuple[TakenTurn, ...]:
        """Take over those of a replica's own running turns that nobody in its process runs."""
        return await self._apart(lambda connection: take_again(connection, replica, ids))

    async def take_all(self, replica: str) -> tuple[TakenTurn, ...]:
        """Take over all running turns of other processes; this is for a process that is the only replica."""
        return await self._apart(lambda connection: take_all(connection, replica))

    async def release(self, hold: Hold) -> None:
        """Give a turn up, so that any other replica may take it over at once."""
        await self._database.write(lambda connection: release(connection, hold))

    async def _apart(self, work: Callable[[Connection], Result]) -> Result:
        return await self._database.write_apart(work, timeout_seconds=DEFAULT_TIMEOUT_SECONDS)


def _checkpoint_change(checkpoint: Checkpoint) -> Parameters:
    return {
        **_encode_hold(checkpoint.hold),
        "output": to_json(list(checkpoint.output)),
        "newest": checkpoint.last_event,
    }


def _no_longer_held(connection: Connection, holds: Sequence[Hold]) -> set[str]:
    """Ask for all at once: of many changes together not every driver tells how many rows they met."""
    dialect = connection.dialect.name
    ids = list_parameter([hold.response_id for hold in holds], dialect)
    found = {(row["id"], row["fence"]) for row in _FIND_HELD[dialect].rows(connection, {"ids": ids})}
    return {hold.response_id for hold in holds if (hold.response_id, hold.fence) not in found}


def _rows_of(turn: NewTurn) -> list[Change]:
    conversation = conversation_parameters(turn.conversation)
    length = turn.expected_log_length
    waited = [Change(TAKE_FIRST, [{"where_id": turn.response.id}], must_meet=True)] if turn.has_waited else []
    taking = _TAKE_NEXT if turn.has_waited else _TAKE
    return [
        *waited,
        Change(_INSERT_CONVERSATION, [conversation]) if length is None else _take(taking, length, conversation),
        *new_rows(turn.conversation.id, turn.entries, turn.items),
        Change(_INSERT_RESPONSE, [response_parameters(turn.response, turn.plan, turn.context_parts)]),
        *add_texts(turn.conversation.id, turn.texts),
    ]


def _take(statement: Statement, expected_log_length: int, parameters: Parameters) -> Change:
    """Return the change by which a turn takes a conversation, which must be free and of this length."""
    changed = {name: value for name, value in parameters.items() if name not in _KEPT_BY_BEGIN}
    where = {"where_id": parameters["id"], "where_log_length": expected_log_length}
    return Change(statement, [{**changed, **where}], must_meet=True)


def _finish_in_steps(connection: Connection, turn: FinishedTurn) -> bool:
    """Store the end of a turn step by step, where it may have been deleted, ended or taken; say whether it was stored.

    Of a response that was deleted meanwhile nothing is kept but what it has brought to the log. Where meanwhile a
    document was deleted on which a restricted turn rests, its entries take over the label by which it is withheld.
    """
    response = turn.response
    ended = _END_HELD.first(connection, {**_encode_hold(response.hold), **finish_parameters(response)})
    if ended is None:
        return False
    shown = [] if ended["is_deleted"] else _write_shown(turn)
    with positions_are_free():
        freed, *_ = change_together(connection, [_free_conversation(turn), *_log_rows(turn), *shown])
    if not freed:
        raise build_held_error()
    if response.is_restricted:
        _TAKE_LABEL.change(connection, {"where_id": response.conversation_id, "where_response_id": response.id})
    if ended["is_deleted"]:
        _delete_response(connection, response.id)
    return True


def _log_rows(turn: FinishedTurn) -> list[Change]:
    return new_rows(turn.response.conversation_id, turn.entries, turn.items)


def _write_shown(turn: FinishedTurn) -> list[Change]:
    return [*write_calls(turn.calls), *write_seen(turn.response)]


def _delete_response(connection: Connection, response_id: str) -> None:
    _DELETE.change(connection, {"where_response_id": response_id})
    delete_calls(connection, response_id)


def _encode_hold(hold: Hold) -> Parameters:
    return {"where_response_id": hold.response_id, "where_fence": hold.fence}


def _build_taken_error() -> TurnTaken:
    return TurnTaken("The turn has ended, or another process has taken it over.")


def _encode_sent_prompt(calls: CallsMade) -> Parameters:
    return {"sent_prompt": calls.sent.model_dump_json()} if calls.sent is not None else {}


def _free_conversation(turn: FinishedTurn) -> Change:
    parameters: Parameters = {
        "where_id": turn.response.conversation_id,
        "where_response_id": turn.response.id,
        "running_response_id": None,
        **_encode_sent_prompt(turn.calls),
    }
    if turn.entries:
        position = turn.entries[0].position
        parameters |= {"where_log_length": position, "log_length": position + len(turn.entries)}
    return Change(_GROW_AND_FREE if turn.entries else _FREE, [parameters])
