"""A directory in SQL: what it says of users and groups, and the rights that follow, in the same transactions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

from sqlalchemy import Connection, RowMapping, Select, delete, exists, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from backend.foundation.sql.database import Database
from backend.groups.domain import Group, GroupSource
from backend.groups.sql.tables import group_member, group_to_row, make_member_row, person_group, row_to_group
from backend.scim.domain import (
    DirectoryGroup,
    DirectoryMember,
    DirectoryUser,
    GroupChange,
    NoSuchMember,
    Sought,
    StaleVersion,
)
from backend.scim.sql.tables import scim_group, scim_member, scim_user
from shared.errors import Conflict, NotFound

_user, _group, _version, _member, _right = scim_user, person_group, scim_group, scim_member, group_member
AT_ONCE = 1_000
"""So many values stand in one statement; databases bound them."""


class SqlDirectoryStore:
    """Users and groups of directories; every method raises Unavailable while the database is away.

    The active users of a group are in it at once, by their `user_id`, and all others are not. What has another version
    than the expected one is a `StaleVersion`, what is not there a `NotFound`, a name that another one has a `Conflict`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create_user(self, user: DirectoryUser) -> bool:
        """Store a user; return False where another one of the tenant has the name."""
        try:
            await self._database.write(lambda connection: connection.execute(insert(_user), _to_row(user)))
        except IntegrityError:
            return False
        return True

    async def users(self, sought: Sought) -> tuple[int, Sequence[DirectoryUser]]:
        """Return how many users there are, and those that are asked for, by name.

        Columns: `id`, `key`, `external_id`, `active`.
        """
        which = [_user.c.tenant == sought.tenant, *(_user.c[name] == value for name, value in sought.equal.items())]
        query = select(_user).where(*which).order_by(_user.c.key).offset(sought.start).limit(sought.most)
        total, rows = await self._page(select(func.count()).select_from(_user).where(*which), query)
        fields = DirectoryUser.model_fields
        return total, [DirectoryUser(**{name: row[name] for name in fields}) for row in rows]

    async def groups_of(self, user_ids: Sequence[str]) -> Mapping[str, Sequence[Group]]:
        """Return the groups in which users have their place, by the ids of users."""
        query = select(_member.c.member_id, *_group.c).join(_group, _group.c.id == _member.c.group_id)
        found: dict[str, list[Group]] = {}
        for some in _in_parts(user_ids):
            here = query.where(_member.c.member_id.in_(some)).order_by(_group.c.name)
            for row in await self._database.read(lambda work, here=here: work.execute(here).mappings().all()):
                found.setdefault(row["member_id"], []).append(row_to_group(row))
        return found

    async def change_user(self, user: DirectoryUser, expected: int) -> None:
        """Replace a user, whose row is held until the rights stand: changes of groups wait, and see what they are."""

        def work(connection: Connection) -> None:
            before = _hold_user(connection, user.tenant, user.id, expected)
            connection.execute(update(_user).where(_user.c.id == user.id), _to_row(user))
            places = select(_member.c.group_id).where(_member.c.member_id == user.id)
            group_ids = list(connection.execute(places).scalars())
            if before == (user.user_id, user.active):
                return
            for group_id in group_ids:
                _forget(connection, group_id, [before[0]])
                _grant(connection, group_id, user.tenant, [user.user_id] if user.active else [])

        await self._write_named(work, f"Another user is called '{user.user_id}'.")

    async def delete_user(self, tenant: str, user_id: str, expected: int) -> None:
        """Delete a user, and take them out of their groups: the places go with the row."""

        def work(connection: Connection) -> None:
            name, _ = _hold_user(connection, tenant, user_id, expected)
            places = select(_member.c.group_id).where(_member.c.member_id == user_id)
            for group_id in list(connection.execute(places).scalars()):
                _forget(connection, group_id, [name])
            connection.execute(delete(_user).where(_user.c.id == user_id))

        await self._database.write(work)

    async def create_group(self, change: GroupChange) -> bool:
        """Store a group; return False where another one of the directory has the name.

        Raises:
            NoSuchMember: a member is no user of the tenant.
        """
        group = change.group

        def work(connection: Connection) -> None:
            connection.execute(insert(_group), group_to_row(group))
            connection.execute(insert(_version), {"group_id": group.id, "version": 1, "changed_at": change.changed_at})
            _set_members(connection, change)

        try:
            await self._database.write(work)
        except IntegrityError:
            return False
        return True

    async def groups(self, sought: Sought, *, with_members: bool) -> tuple[int, Sequence[DirectoryGroup]]:
        """Return how many groups there are, and those that are asked for, by name.

        Columns: `id`, `external_id`, `member_id`.
        """
        equal = {**sought.equal}
        which = [_group.c.tenant == sought.tenant, _group.c.source == GroupSource.SCIM.value]
        if (member_id := equal.pop("member_id", None)) is not None:
            which.append(exists().where(_member.c.group_id == _group.c.id, _member.c.member_id == member_id))
        which += [_group.c[name] == value for name, value in equal.items()]
        joined = select(*_group.c, _version.c.version, _version.c.changed_at).join(
            _version, _version.c.group_id == _group.c.id
        )
        query = joined.where(*which).order_by(_group.c.name).offset(sought.start).limit(sought.most)
        total, rows = await self._page(select(func.count()).select_from(_group).where(*which), query)
        ids = [row["id"] for row in rows] if with_members else []
        members = await self.members(ids)
        return total, [
            DirectoryGroup(row_to_group(row), row["version"], row["changed_at"], members.get(row["id"], ()))
            for row in rows
        ]

    async def change_group(self, change: GroupChange) -> None:
        """Replace a group, whose version is held until all stands.

        Raises:
            NoSuchMember: a member is no user of the tenant.
        """
        group = change.group
        named = {"name": group.name, "external_id": group.external_id}

        def work(connection: Connection) -> None:
            _hold_group(connection, group.tenant, group.id, change.expected)
            connection.execute(update(_group).where(_group.c.id == group.id).values(named))
            changed = {"version": change.expected + 1, "changed_at": change.changed_at}
            connection.execute(update(_version).where(_version.c.group_id == group.id).values(changed))
            _set_members(connection, change)

        await self._write_named(work, f"Another group is called '{group.name}'.")

    async def delete_group(self, tenant: str, group_id: str, expected: int) -> None:
        """Delete a group, and with it the rights of those who are in it."""

        def work(connection: Connection) -> None:
            _hold_group(connection, tenant, group_id, expected)
            connection.execute(delete(_group).where(_group.c.id == group_id))

        await self._database.write(work)

    async def _write_named(self, work: Any, taken: str) -> None:
        try:
            await self._database.write(work)
        except IntegrityError:
            raise Conflict(taken) from None

    async def _page(self, counted: Select[Any], query: Select[Any]) -> tuple[int, Sequence[RowMapping]]:
        def work(connection: Connection) -> tuple[int, Sequence[RowMapping]]:
            return connection.execute(counted).scalar_one(), connection.execute(query).mappings().all()

        return await self._database.read(work)

    async def members(self, group_ids: Sequence[str]) -> Mapping[str, tuple[DirectoryMember, ...]]:
        """Return who has a place in groups, by the ids of groups."""
        query = select(_member.c.group_id, _user.c.id, _user.c.user_id).join(_user, _user.c.id == _member.c.member_id)
        found: list[Any] = []
        for some in _in_parts(group_ids):
            here = query.where(_member.c.group_id.in_(some)).order_by(_member.c.group_id, _user.c.id)
            found += await self._database.read(lambda work, here=here: work.execute(here).all())
        by_group = groupby(found, key=lambda row: cast(str, row[0]))
        return {group_id: tuple(DirectoryMember(row[1], row[2]) for row in rows) for group_id, rows in by_group}


def _in_parts(values: Collection[str]) -> Iterator[Sequence[str]]:
    ordered = list(values)
    return (ordered[start : start + AT_ONCE] for start in range(0, len(ordered), AT_ONCE))


def _hold_user(connection: Connection, tenant: str, user_id: str, expected: int) -> tuple[str, bool]:
    """Lock a user; return their name and whether they are active."""
    query = select(_user.c.user_id, _user.c.active, _user.c.version)
    held = query.where(_user.c.id == user_id, _user.c.tenant == tenant).with_for_update()
    if (row := connection.execute(held).one_or_none()) is None:
        raise NotFound(f"There is no user '{user_id}'.")
    if row.version != expected:
        raise StaleVersion
    return row.user_id, row.active


def _hold_group(connection: Connection, tenant: str, group_id: str, expected: int) -> None:
    query = select(_version.c.version).join(_group, _group.c.id == _version.c.group_id)
    held = query.where(_group.c.id == group_id, _group.c.tenant == tenant).with_for_update()
    if (version := connection.execute(held).scalar_one_or_none()) is None:
        raise NotFound(f"There is no group '{group_id}'.")
    if version != expected:
        raise StaleVersion


def _set_members(connection: Connection, change: GroupChange) -> None:
    """Give places to those who have none and take them from others; users whose place changes are held meanwhile."""
    group = change.group
    places = select(_member.c.member_id).where(_member.c.group_id == group.id)
    before = frozenset(connection.execute(places).scalars())
    added, removed = change.member_ids - before, before - change.member_ids
    held = {row.id: row for row in _hold_users(connection, group.tenant, sorted(added | removed))}
    if not added <= held.keys():
        raise NoSuchMember
    for some in _in_parts(sorted(removed)):
        connection.execute(delete(_member).where(_member.c.group_id == group.id, _member.c.member_id.in_(some)))
    _forget(connection, group.id, [held[each].user_id for each in removed if each in held])
    if added:
        connection.execute(insert(_member), [{"group_id": group.id, "member_id": each} for each in sorted(added)])
    _grant(connection, group.id, group.tenant, [held[each].user_id for each in added if held[each].active])


def _hold_users(connection: Connection, tenant: str, user_ids: Sequence[str]) -> list[Any]:
    """Lock users in the order of their ids, so that no two groups wait for each other."""
    query = select(_user.c.id, _user.c.user_id, _user.c.active).where(_user.c.tenant == tenant).order_by(_user.c.id)
    found: list[Any] = []
    for some in _in_parts(user_ids):
        found += connection.execute(query.where(_user.c.id.in_(some)).with_for_update()).all()
    return found


def _forget(connection: Connection, group_id: str, user_ids: Collection[str]) -> None:
    for some in _in_parts(user_ids):
        connection.execute(delete(_right).where(_right.c.group_id == group_id, _right.c.user_id.in_(some)))


def _grant(connection: Connection, group_id: str, tenant: str, user_ids: Collection[str]) -> None:
    if user_ids:
        connection.execute(insert(_right), [make_member_row(group_id, tenant, user_id) for user_id in user_ids])


def _to_row(user: DirectoryUser) -> dict[str, object]:
    return {**user.model_dump(), "key": user.key}
