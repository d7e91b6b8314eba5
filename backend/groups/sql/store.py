"""Groups and who is in them, in SQL."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, select, text, update

from backend.foundation.sql.database import Database
from backend.foundation.sql.paging import follows_row, rows_in_order
from backend.foundation.sql.schema import Instant
from backend.foundation.sql.statements import Statement
from backend.groups.domain import ClaimedSet, Group, GroupSource
from backend.groups.sql.tables import (
    claimed_groups,
    group_member,
    group_to_row,
    make_member_row,
    person_group,
    row_to_group,
)
from shared.errors import NotFound

_group, _member = person_group, group_member
_PLACE = (_group.c.created_at, _group.c.id)
_HAS_ID = _group.c.id == bindparam("where_id")
# A second transaction with the same name waits for the first one, and then inserts no row.
_INSERT = Statement(
    text("""
        INSERT INTO person_group (id, tenant, name, source, created_at, external_id)
        VALUES (:id, :tenant, :name, :source, :created_at, :external_id)
        ON CONFLICT (tenant, source, name) DO NOTHING
    """).bindparams(bindparam("created_at", type_=Instant))
)
_NAMED = select(_group).where(
    _group.c.tenant == bindparam("tenant"),
    _group.c.source == bindparam("source"),
    _group.c.name.in_(bindparam("names", expanding=True)),
)
_HOLD = Statement(select(_group.c.id).where(_HAS_ID).with_for_update())
_PUT_IN = Statement(
    text("""
        INSERT INTO group_member (group_id, user_id, tenant, named) VALUES (:group_id, :user_id, :tenant, :named)
        ON CONFLICT (group_id, user_id) DO NOTHING
    """)
)
_TAKE_OUT = Statement(
    delete(_member).where(
        _member.c.group_id == bindparam("where_group_id"), _member.c.user_id == bindparam("where_user_id")
    )
)
_MEMBERS = Statement(
    select(_member.c.user_id)
    .where(_member.c.group_id == bindparam("where_group_id"), _member.c.user_id > bindparam("after"))
    .order_by(_member.c.user_id)
    .limit(bindparam("most"))
)
_IS_USER = (_member.c.tenant == bindparam("tenant"), _member.c.user_id == bindparam("user_id"))
_GROUPS_OF = Statement(select(_member.c.group_id).where(*_IS_USER))
_CLAIMED_BY = (claimed_groups.c.tenant == bindparam("tenant"), claimed_groups.c.user_id == bindparam("user_id"))
_FIND_CLAIMED = Statement(select(claimed_groups.c.digest, claimed_groups.c.issued_at).where(*_CLAIMED_BY))
# The row is there and locked before it is read, so that of two tokens the older one waits and then changes nothing.
_OPEN_CLAIMED = Statement(
    text("""
        INSERT INTO claimed_groups (tenant, user_id, digest, issued_at) VALUES (:tenant, :user_id, '', -1)
        ON CONFLICT (tenant, user_id) DO UPDATE SET digest = claimed_groups.digest
    """)
)
_NOTE_CLAIMED = Statement(
    update(claimed_groups).where(
        claimed_groups.c.tenant == bindparam("where_tenant"), claimed_groups.c.user_id == bindparam("where_user_id")
    )
)
_OF_TOKENS = Statement(
    select(_member.c.group_id)
    .join(_group, _group.c.id == _member.c.group_id)
    .where(*_IS_USER, _group.c.source == GroupSource.CLAIM.value)
)


class SqlGroupStore:
    """The `GroupStore` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, group: Group) -> bool:
        """Store a group; return False where the name is taken."""
        return bool(await self._database.write(lambda connection: _INSERT.change(connection, group_to_row(group))))

    async def find(self, tenant: str, group_ids: Collection[str]) -> Mapping[str, Group]:
        """Return those of a tenant's groups, by id."""
        query = select(_group).where(_group.c.tenant == tenant, _group.c.id.in_(group_ids))
        return {group.id: group for group in await self._read(query)}

    async def page(
        self, tenant: str, of_user: str | None, after: Group | None, limit: int, *, descending: bool
    ) -> tuple[Group, ...]:
        """Return up to `limit` groups behind another one, by age."""
        query = select(_group).where(_group.c.tenant == tenant)
        if of_user is not None:
            mine = select(_member.c.group_id).where(_member.c.tenant == tenant, _member.c.user_id == of_user)
            query = query.where(_group.c.id.in_(mine))
        if after is not None:
            query = query.where(follows_row(_PLACE, after.created_at, after.id, descending=descending))
        return await self._read(query.order_by(*rows_in_order(_PLACE, descending=descending)).limit(limit))

    async def replace(self, group: Group) -> bool:
        """Give a group another name and external id."""

        def work(connection: Connection) -> bool:
            named = {"tenant": group.tenant, "source": group.source.value, "names": [group.name]}
            if any(row["id"] != group.id for row in connection.execute(_NAMED, named).mappings()):
                return False
            changed = {"name": group.name, "external_id": group.external_id}
            return connection.execute(update(_group).where(_group.c.id == group.id).values(changed)).rowcount > 0

        return await self._database.write(work)

    async def delete(self, tenant: str, group_id: str) -> bool:
        """Delete a group; who is in it goes with it."""
        gone = delete(_group).where(_group.c.tenant == tenant, _group.c.id == group_id)
        return await self._database.write(lambda connection: connection.execute(gone).rowcount > 0)

    async def members(self, group_id: str, after: str, limit: int) -> Sequence[str]:
        """Return up to `limit` user ids."""
        which = {"where_group_id": group_id, "after": after, "most": limit}
        rows = await self._database.read(lambda connection: _MEMBERS.rows(connection, which))
        return [row["user_id"] for row in rows]

    async def change_members(self, group: Group, added: Collection[str], removed: Collection[str]) -> tuple[int, int]:
        """Put users into a group and take users out, in one transaction."""

        def work(connection: Connection) -> tuple[int, int]:
            if _HOLD.first(connection, {"where_id": group.id}) is None:
                raise NotFound(f"There is no group '{group.id}'.", param="group_id")
            return _put_in(connection, [group], added), _take_out(connection, [group.id], removed)

        return await self._database.write(work)

    async def groups_of(self, tenant: str, user_id: str) -> frozenset[str]:
        """Return the ids of the groups that a user is in."""
        who = {"tenant": tenant, "user_id": user_id}
        rows = await self._database.read(lambda connection: _GROUPS_OF.rows(connection, who))
        return frozenset(row["group_id"] for row in rows)

    async def find_claimed(self, tenant: str, user_id: str) -> ClaimedSet | None:
        """Return what the newest token of a user said."""
        row = await self._database.find(_FIND_CLAIMED, {"tenant": tenant, "user_id": user_id})
        return ClaimedSet(row["digest"], row["issued_at"]) if row is not None else None

    async def set_claimed(self, tenant: str, user_id: str, names: Mapping[str, Group], said: ClaimedSet) -> None:
        """Put a user into these groups of tokens, and into no others, unless a newer token has said something.

        Of two tokens of one second, the user is in the groups that both name.
        """
        who = {"tenant": tenant, "user_id": user_id}

        def work(connection: Connection) -> None:
            _OPEN_CLAIMED.change(connection, who)
            before = _FIND_CLAIMED.rows(connection, who)[0]
            if said.issued_at < before["issued_at"]:
                return
            wanted = _ensure(connection, tenant, names)
            current = {row["group_id"] for row in _OF_TOKENS.rows(connection, who)}
            if said.issued_at > before["issued_at"]:
                _put_in(connection, [group for group in wanted if group.id not in current], [user_id])
            _take_out(connection, current - {group.id for group in wanted}, [user_id])
            noted = {"digest": said.digest, "issued_at": said.issued_at}
            _NOTE_CLAIMED.change(connection, {"where_tenant": tenant, "where_user_id": user_id, **noted})

        await self._database.write(work)

    async def _read(self, query: Select[Any]) -> tuple[Group, ...]:
        rows = await self._database.read(lambda connection: connection.execute(query).mappings().all())
        return tuple(map(row_to_group, rows))


def _ensure(connection: Connection, tenant: str, names: Mapping[str, Group]) -> list[Group]:
    """Return the groups of these names, and store those that are missing."""
    which = {"tenant": tenant, "source": GroupSource.CLAIM.value, "names": sorted(names)}
    if not names:
        return []
    found = [row_to_group(row) for row in connection.execute(_NAMED, which).mappings()]
    missing = sorted(names.keys() - {group.name for group in found})
    if not missing:
        return found
    _INSERT.change(connection, *[group_to_row(names[name]) for name in missing])
    return [row_to_group(row) for row in connection.execute(_NAMED, which).mappings()]


def _put_in(connection: Connection, groups: Collection[Group], user_ids: Collection[str]) -> int:
    rows = [make_member_row(group.id, group.tenant, user_id) for group in groups for user_id in user_ids]
    return _PUT_IN.change(connection, *rows) if rows else 0


def _take_out(connection: Connection, group_ids: Collection[str], user_ids: Collection[str]) -> int:
    rows = [{"where_group_id": group_id, "where_user_id": user_id} for group_id in group_ids for user_id in user_ids]
    return _TAKE_OUT.change(connection, *rows) if rows else 0
