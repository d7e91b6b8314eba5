"""Where the move of a tenant is, and the steps that change it: each is one transaction of one cell."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, Update, and_, delete, func, insert, select, true, update
from sqlalchemy import tuple_ as row_of

from backend.cells.domain import STOP_SECONDS, Phase
from backend.cells.sql.copying import Rows, late_rows, put_rows
from backend.cells.sql.fence import pass_fence, tables_with_fence
from backend.cells.sql.owned import LATE, belongs_to, columns_to_move, is_of_conversation, tables_of_tenants
from backend.cells.sql.tables import tenant_move
from backend.conversations.domain.responses import ARRIVING
from backend.foundation.sql.schema import metadata

_FAR = timedelta(days=3_650)
_NOW = func.clock_timestamp()
_OWN_OF_PEOPLE = ("metadata", "members")
"""What people change of a conversation while its turn runs: in the cell where they are by then."""


class Move(NamedTuple):
    """The row of a tenant that moves."""

    cell: str
    phase: Phase
    seen: str | None


def find_move(connection: Connection, tenant: str) -> Move | None:
    """Return where the move of a tenant is, as this cell knows it."""
    row = connection.execute(select(tenant_move).where(tenant_move.c.tenant == tenant)).mappings().first()
    return Move(row["cell"], Phase(row["phase"]), row["seen"]) if row is not None else None


def is_there(connection: Connection, tenant: str) -> bool:
    """Whether a cell has anything of a tenant but keys."""
    own = [table for table in tables_of_tenants() if "tenant" in table.c and table.name != "api_key"]
    return any(
        connection.execute(select(select(1).where(belongs_to(table, tenant)).exists())).scalar() for table in own
    )


def is_anyone_moving(connection: Connection) -> bool:
    """Whether a tenant leaves this cell, or has left a copy in it."""
    leaves = select(tenant_move.c.tenant).where(tenant_move.c.phase != Phase.ARRIVED.value)
    return bool(connection.execute(select(leaves.exists())).scalar())


def note_move(connection: Connection, tenant: str, cell: str, phase: Phase) -> None:
    """Write down that a tenant moves, or has arrived."""
    connection.execute(insert(tenant_move).values(tenant=tenant, cell=cell, phase=phase.value, held=""))


def forget_move(connection: Connection, tenant: str) -> None:
    """Delete the row of a move."""
    connection.execute(delete(tenant_move).where(tenant_move.c.tenant == tenant))


def change_move(connection: Connection, tenant: str, phase: Phase, **values: object) -> None:
    """Change how far it is; who writes for the tenant at this moment is waited for."""
    connection.execute(_of(tenant).values(phase=phase.value, **values))


def stop_writes(connection: Connection, tenant: str) -> int:
    """Stop what is written for a tenant, for `STOP_SECONDS` at most; return how many turns run on.

    Which they are is read behind the stop: nobody who writes for the tenant is under way then.
    """
    until = _NOW + timedelta(seconds=STOP_SECONDS)
    change_move(connection, tenant, Phase.STOPPED, stopped_until=until)
    conversation = metadata.tables["conversation"]
    running = select(conversation.c.id).where(_is_running(tenant))
    held = connection.execute(running).scalars().all()
    connection.execute(_of(tenant).values(held=" ".join(held)))
    return len(held)


def keep_stopped(connection: Connection, tenant: str) -> bool:
    """Let the stop last until the tenant has arrived; False where it has ended already."""
    is_stopped = (tenant_move.c.phase == Phase.STOPPED.value) & (tenant_move.c.stopped_until > _NOW)
    return connection.execute(_of(tenant).where(is_stopped).values(phase=Phase.SWITCHING.value)).rowcount > 0


def has_unsettled_searches(connection: Connection, tenant: str) -> bool:
    """Whether restricted searches wait for their outcome: their receipts belong into one chain."""
    search = metadata.tables["restricted_search"]
    waits = select(search.c.id).where(search.c.tenant == tenant, search.c.ruling.is_(None))
    return bool(connection.execute(select(waits.exists())).scalar())


def take_late(source: Connection, tenant: str) -> tuple[dict[str, Rows], Sequence[str]]:
    """Return by table what comes with the switch, and the conversations whose turns ran at the stop."""
    held = source.execute(select(tenant_move.c.held).where(tenant_move.c.tenant == tenant)).scalar_one()
    late = {table.name: late_rows(source, table, tenant) for table in tables_of_tenants() if table.name in LATE}
    return late, held.split()


def arrive(target: Connection, tenant: str, cell: str, late: dict[str, Rows], held: Sequence[str]) -> None:
    """Let the tenant be here: with its keys, and with what waits.

    Turns that still run in the other cell have a process there that no process here judges.
    """
    there = f"cell:{cell}"
    for row in late["response"]:
        row["replica"] = there
    for row in late["attachment"]:
        row["leased_until"] = None
    for table in tables_of_tenants():
        put_rows(target, table, late.get(table.name, ()))
    replica, conversation = metadata.tables["replica"], metadata.tables["conversation"]
    put_rows(target, replica, [{"name": there, "seen_at": _now(target) + _FAR, "expires_at": _now(target) + _FAR}])
    target.execute(update(conversation).where(conversation.c.id.in_(held)).values(running_response_id=ARRIVING))
    note_move(target, tenant, cell, Phase.ARRIVED)


def leave(source: Connection, tenant: str) -> None:
    """Let the old cell be a copy to read: what waits there is begun by nobody any more."""
    pass_fence(source)
    change_move(source, tenant, Phase.MOVED)
    for name in ("waiting_turn", "attachment"):
        table = metadata.tables[name]
        source.execute(delete(table).where(belongs_to(table, tenant), LATE[name]))


def find_key_ids(target: Connection, tenant: str) -> Sequence[str]:
    """Return the ids of a tenant's keys."""
    key = metadata.tables["api_key"]
    return target.execute(select(key.c.id).where(key.c.tenant == tenant)).scalars().all()


def find_arriving(target: Connection, tenant: str) -> Sequence[str]:
    """Return the conversations that are still to follow."""
    conversation = metadata.tables["conversation"]
    its = (conversation.c.tenant == tenant) & (conversation.c.running_response_id == ARRIVING)
    return target.execute(select(conversation.c.id).where(its)).scalars().all()


def release_ended(source: Connection, tenant: str, arriving: Sequence[str]) -> Sequence[str]:
    """Take those whose turn has ended out of what the fence lets pass, and return them; nothing changes them then."""
    move = source.execute(select(tenant_move.c.held).where(tenant_move.c.tenant == tenant).with_for_update())
    held = set(move.scalar_one().split())
    conversation = metadata.tables["conversation"]
    runs = select(conversation.c.id).where(conversation.c.id.in_(arriving), _is_running(tenant))
    running = set(source.execute(runs).scalars())
    source.execute(_of(tenant).values(held=" ".join(held & running)))
    return [each for each in arriving if each not in running]


def read_conversation(source: Connection, tenant: str, conversation_id: str) -> dict[str, Rows]:
    """Return by table all rows of a conversation and of its responses; none where it was deleted."""
    found: dict[str, Rows] = {}
    for table in _of_conversations():
        columns, its = [table.c[name] for name in columns_to_move(table)], belongs_to(table, tenant)
        asked = select(*columns).where(_is_in(table, conversation_id), its)
        found[table.name] = [dict(row) for row in source.execute(asked).mappings()]
    return found


def follow(target: Connection, tenant: str, conversation_id: str, found: dict[str, Rows]) -> None:
    """Bring a conversation whose turn has ended to its newest state, and let it be used here."""
    conversation = metadata.tables["conversation"]
    its = and_(conversation.c.id == conversation_id, conversation.c.tenant == tenant)
    if target.execute(select(conversation.c.id).where(its).with_for_update()).first() is None:
        return
    children = [table for table in _of_conversations() if table.name != "conversation"]
    for table in children[::-1]:
        target.execute(delete(table).where(_is_in(table, conversation_id), _is_replaced(table, found)))
    for table in children:
        put_rows(target, table, found[table.name])
    _put_conversation(target, its, found["conversation"])


def _put_conversation(target: Connection, its: ColumnElement[bool], rows: Rows) -> None:
    conversation = metadata.tables["conversation"]
    if not rows:
        target.execute(delete(conversation).where(its))
    for row in rows:
        changed = {name: value for name, value in row.items() if name not in _OWN_OF_PEOPLE}
        target.execute(update(conversation).where(its).values(**changed))


def _of_conversations() -> list[Table]:
    return [table for table in tables_of_tenants() if is_of_conversation(table)]


def _is_replaced(table: Table, found: dict[str, Rows]) -> ColumnElement[bool]:
    """Whether a row is taken out before the new ones are put; others refer to responses, so those that stay stay."""
    if table.name != "response":
        return true()
    return table.c.id.not_in([row["id"] for row in found["response"]])


def drop_rows(connection: Connection, tenant: str, most: int) -> int:
    """Delete some rows of a tenant, its keys before all, and return how many."""
    pass_fence(connection)
    for table in _as_dropped():
        key = list(table.primary_key.columns)
        some = select(*key).where(belongs_to(table, tenant)).limit(most)
        count = connection.execute(delete(table).where(row_of(*key).in_(some))).rowcount
        if count > 0:
            return count
    return 0


def _as_dropped() -> Sequence[Table]:
    """Return the tables in the order of dropping: what only others tell whose it is goes while these are there."""

    def place(table: Table) -> int:
        if table.name == "api_key":
            return 0
        return 2 if table in tables_with_fence() else 1

    children_first = tables_of_tenants()[::-1]
    return sorted(children_first, key=place)


def _of(tenant: str) -> Update:
    return update(tenant_move).where(tenant_move.c.tenant == tenant)


def _is_running(tenant: str) -> ColumnElement[bool]:
    conversation = metadata.tables["conversation"]
    return (conversation.c.tenant == tenant) & conversation.c.running_response_id.is_not(None)


def _is_in(table: Table, conversation_id: str) -> ColumnElement[bool]:
    return table.c["id" if table.name == "conversation" else "conversation_id"] == conversation_id


def _now(connection: Connection) -> datetime:
    return connection.execute(select(_NOW)).scalar_one()
