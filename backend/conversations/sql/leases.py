"""Leases in SQL: each statement reads the time of the database itself, so that no process's clock counts.

A statement may reach a database that stands still and run when it wakes. All leases look expired then, that of the
judge among them; so a replica judges others only in a statement that finds its own lease fresh.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import get_args

from sqlalchemy import Connection, Integer, bindparam, case, delete, insert, or_, select, update

from backend.conversations.domain.leases import LeaseTerms, TakenTurn
from backend.conversations.domain.responses import Hold
from backend.conversations.sql import tables
from backend.conversations.sql.codec import to_taken_turn
from backend.foundation.sql.clock import database_time
from backend.foundation.sql.parameters import Dialect, is_among, list_parameter
from backend.foundation.sql.statements import Row, Statement
from shared.errors import CorruptRecord

_response = tables.response
_replica = tables.replica

RELEASED = ""
"""The replica of a turn that its process has given up."""

UNLEASED_SECONDS = 30.0
"""The previous release takes no lease: a replica of it lives as long as its last sign of life is not older."""

FORGOTTEN_SECONDS = 86_400.0


_now = database_time("zero")
_lease_end = database_time("lease")
_is_held_up = _replica.c.seen_at < database_time("minus_gap")

_RENEW = Statement(
    update(_replica)
    .where(_replica.c.name == bindparam("where_name"))
    .values(
        seen_at=_now,
        expires_at=_lease_end,
        trusted_from=case((_is_held_up, _lease_end), else_=_replica.c.trusted_from),
    )
)
_FIRST_RENEWAL = Statement(
    insert(_replica).values(name=bindparam("where_name"), seen_at=_now, expires_at=_lease_end, trusted_from=_lease_end)
)
_FORGET_REPLICAS = Statement(delete(_replica).where(_replica.c.seen_at < database_time("minus_forgotten")))

_is_alive = or_(
    _replica.c.expires_at >= _now,
    _replica.c.expires_at.is_(None) & (_replica.c.seen_at >= database_time("minus_unleased")),
)
_alive = select(_replica.c.name).where(_is_alive)
_me = _replica.c.name == bindparam("me")
_i_hold = select(_replica.c.name).where(_me, _replica.c.expires_at >= _now).exists()
_i_may_judge = (
    select(_replica.c.name)
    .where(_me, _replica.c.seen_at >= database_time("minus_fresh"), _replica.c.trusted_from <= _now)
    .exists()
)
_is_abandoned = or_(_response.c.replica == RELEASED, _i_may_judge & _response.c.replica.not_in(_alive))
_is_of_another = _response.c.replica != bindparam("me")
_abandoned = (
    select(_response.c.id)
    .where(tables.IS_RUNNING, _is_of_another, _i_hold, _is_abandoned)
    .order_by(_response.c.created_at, _response.c.id)
    .limit(bindparam("most", type_=Integer))
    .with_for_update(skip_locked=True)
    # A subquery that locks may run once for each row it is compared with, and go beyond its limit by that.
    .cte("abandoned")
    .prefix_with("MATERIALIZED")
)
_take = (
    update(_response)
    .where(tables.IS_RUNNING, _is_of_another)
    .values(replica=bindparam("me"), fence=_response.c.fence + 1)
    .returning(_response)
)
_TAKE_ABANDONED = Statement(_take.where(_response.c.id.in_(select(_abandoned.c.id))))
_TAKE_ALL = Statement(_take)
_is_mine = _response.c.replica == bindparam("me")
_RUNNING_IDS = Statement(select(_response.c.id).where(tables.IS_RUNNING, _is_mine))
_TAKE_AGAIN = {
    dialect: Statement(
        update(_response)
        .where(tables.IS_RUNNING, _is_mine, is_among(_response.c.id, "ids", dialect))
        .values(fence=_response.c.fence + 1)
        .returning(_response)
    )
    for dialect in get_args(Dialect)
}
_RELEASE = Statement(
    update(_response)
    .where(
        _response.c.id == bindparam("where_response_id"),
        _response.c.fence == bindparam("where_fence"),
        tables.IS_RUNNING,
    )
    .values(replica=RELEASED)
)


def renew(connection: Connection, replica: str, terms: LeaseTerms) -> None:
    """Extend the lease of a replica; after a first or a late renewal it judges nobody for the length of a lease."""
    times = {"where_name": replica, "zero": 0.0, "lease": terms.seconds}
    if not _RENEW.change(connection, {**times, "minus_gap": -terms.gap_seconds}):
        _FORGET_REPLICAS.change(connection, {"minus_forgotten": -FORGOTTEN_SECONDS})
        _FIRST_RENEWAL.change(connection, times)


def take_abandoned(connection: Connection, replica: str, terms: LeaseTerms, limit: int) -> tuple[TakenTurn, ...]:
    """Take over up to `limit` turns that were released, or whose replica's lease has expired, the oldest first."""
    times = {"zero": 0.0, "minus_unleased": -UNLEASED_SECONDS, "minus_fresh": -terms.fresh_seconds}
    return _take_with(connection, _TAKE_ABANDONED, {"me": replica, "most": limit, **times})


def take_all(connection: Connection, replica: str) -> tuple[TakenTurn, ...]:
    """Take over all turns that other processes have left running."""
    return _take_with(connection, _TAKE_ALL, {"me": replica})


def find_running_ids(connection: Connection, replica: str) -> frozenset[str]:
    """Return the ids of the running turns of a replica."""
    return frozenset(row["id"] for row in _RUNNING_IDS.rows(connection, {"me": replica}))


def take_again(connection: Connection, replica: str, ids: Sequence[str]) -> tuple[TakenTurn, ...]:
    """Take over some of the turns that a replica has itself."""
    dialect = connection.dialect.name
    return _take_with(connection, _TAKE_AGAIN[dialect], {"me": replica, "ids": list_parameter(ids, dialect)})


def release(connection: Connection, hold: Hold) -> None:
    """Let any other replica take a turn over; no effect where one has done so."""
    _RELEASE.change(connection, {"where_response_id": hold.response_id, "where_fence": hold.fence})


def _take_with(connection: Connection, statement: Statement, parameters: Mapping[str, object]) -> tuple[TakenTurn, ...]:
    taken = _readable(statement.rows(connection, parameters))
    return tuple(sorted(taken, key=lambda turn: (turn.response.created_at, turn.response.id)))


def _readable(rows: Iterable[Row]) -> Generator[TakenTurn]:
    """Read what can be read: a damaged row must not keep the turns of the others from being continued."""
    for row in rows:
        with suppress(CorruptRecord):
            yield to_taken_turn(row)
