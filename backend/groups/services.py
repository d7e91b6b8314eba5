"""Administering groups, and writing through what tokens say of them."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from backend.foundation.domain.bounded import Bounded
from backend.foundation.domain.paging import PageQuery
from backend.groups.domain import ClaimedSet, Group, GroupSource, digest_names, group_in, name_group, require_source
from backend.groups.ports import GroupStore
from backend.identity.domain import Caller, KeyRole
from shared.clock import Clock
from shared.errors import Conflict, NotFound
from shared.ids import IdPrefix, new_id

MOST_KNOWN = 10_000
FindOwned = Callable[[str, str], Awaitable[Sequence[str]]]
"""Returns the bases and agents that a member of a tenant owns alone, by their ids and names."""


class GroupDirectory:
    """The groups of a tenant: administrators see and change all, others see those that they are in."""

    def __init__(self, store: GroupStore, find_owned: FindOwned, clock: Clock) -> None:
        self._store = store
        self._find_owned = find_owned
        self._clock = clock

    async def create(self, tenant: str, name: str, source: GroupSource, external_id: str | None = None) -> Group:
        """Create a group without members; one of tokens waits for tokens that name it.

        Raises:
            Conflict: another group of this source has the name.
        """
        group = self.make(tenant, name, source, external_id)
        if not await self._store.create(group):
            raise _name_taken(name)
        return group

    def make(self, tenant: str, name: str, source: GroupSource, external_id: str | None = None) -> Group:
        """Return a new group that is not stored."""
        now = self._clock.now()
        return Group(
            id=new_id(IdPrefix.GROUP), tenant=tenant, name=name, source=source, created_at=now, external_id=external_id
        )

    async def find(self, caller: Caller, group_id: str) -> Group:
        """Return a group.

        Raises:
            NotFound: there is none in the caller's tenant, or the caller is in another one and no administrator.
        """
        found = (await self._store.find(caller.tenant, [group_id])).get(group_id)
        is_seen = caller.role is KeyRole.ADMIN or group_id in await self._store.groups_of(caller.tenant, caller.user_id)
        if found is None or not is_seen:
            raise _no_such_group(group_id)
        return found

    async def page(self, caller: Caller, query: PageQuery) -> tuple[tuple[Group, ...], bool]:
        """Return a page of the groups that the caller sees, and whether more follow.

        Raises:
            NotFound: the page is to follow a group that the caller does not see.
        """
        after = await self.find(caller, query.after) if query.after is not None else None
        of_user = None if caller.role is KeyRole.ADMIN else caller.user_id
        found = await self._store.page(caller.tenant, of_user, after, query.limit + 1, descending=query.descending)
        return found[: query.limit], len(found) > query.limit

    async def rename(self, caller: Caller, group_id: str, name: str) -> Group:
        """Give a group of this API another name.

        Raises:
            NotFound: there is no such group.
            Conflict: another group has the name, or this one comes from elsewhere.
        """
        group = await self._changeable(caller, group_id)
        renamed = group.model_copy(update={"name": name})
        if not await self._store.replace(renamed):
            raise _name_taken(name)
        return renamed

    async def delete(self, tenant: str, group_id: str) -> None:
        """Delete a group, and with it the rights of those who are in it.

        Raises:
            NotFound: there is no such group.
            Conflict: a base or an agent has no other owner.
        """
        owned = await self._find_owned(tenant, name_group(group_id))
        if owned:
            shown = ", ".join(owned[:50])
            raise Conflict(f"This group alone owns some things; give them another owner first: {shown}.")
        if not await self._store.delete(tenant, group_id):
            raise _no_such_group(group_id)

    async def members(self, caller: Caller, group_id: str, after: str, limit: int) -> tuple[Sequence[str], bool]:
        """Return a page of the user ids of a group, in their order, and whether more follow.

        Raises:
            NotFound: there is no such group.
        """
        await self.find(caller, group_id)
        found = await self._store.members(group_id, after, limit + 1)
        return found[:limit], len(found) > limit

    async def put_in(self, caller: Caller, group_id: str, user_id: str) -> bool:
        """Put a user into a group of this API; return whether they were not in it.

        Raises:
            NotFound: there is no such group.
            Conflict: this group comes from elsewhere.
        """
        group = await self._changeable(caller, group_id)
        return (await self._store.change_members(group, [user_id], ()))[0] > 0

    async def take_out(self, caller: Caller, group_id: str, user_id: str) -> None:
        """Take a user out of a group of this API.

        Raises:
            NotFound: there is no such group, or the user is not in it.
            Conflict: this group comes from elsewhere.
        """
        group = await self._changeable(caller, group_id)
        if not (await self._store.change_members(group, (), [user_id]))[1]:
            raise NotFound(f"The user '{user_id}' is not in this group.", param="user_id")

    async def _changeable(self, caller: Caller, group_id: str) -> Group:
        group = await self.find(caller, group_id)
        require_source(group, GroupSource.API)
        return group


class NamedMember(NamedTuple):
    """A member of something as it is shown: a user, or a group with its name."""

    user_id: str | None
    group_id: str | None = None
    group: str | None = None

    @property
    def id(self) -> str:
        """The id of the user or of the group."""
        return self.user_id or self.group_id or ""


class GroupNames:
    """Names of the groups that are members of bases and agents."""

    def __init__(self, store: GroupStore) -> None:
        self._store = store

    async def member(self, caller: Caller, group_id: str) -> tuple[str, NamedMember]:
        """Return what stands for a group of the caller's tenant among members, and how it is shown.

        Raises:
            NotFound: there is no such group.
        """
        found = (await self._store.find(caller.tenant, [group_id])).get(group_id)
        if found is None:
            raise _no_such_group(group_id)
        return name_group(group_id), NamedMember(None, group_id, found.name)

    async def name(self, tenant: str, members: Collection[str]) -> Mapping[str, NamedMember]:
        """Return how members are shown; a group that is deleted is left out."""
        groups = {member: group_in(member) for member in members}
        ids = [group_id for group_id in groups.values() if group_id is not None]
        found: Mapping[str, Group] = await self._store.find(tenant, ids) if ids else {}
        return {
            member: NamedMember(member) if group_id is None else NamedMember(None, group_id, found[group_id].name)
            for member, group_id in groups.items()
            if group_id is None or group_id in found
        }

    async def is_in(self, caller: Caller, member: str) -> bool:
        """Say whether a member is a group that the caller is in."""
        group_id = group_in(member)
        return group_id is not None and group_id in await self._store.groups_of(caller.tenant, caller.user_id)


class ClaimedGroups:
    """Writes through what tokens say of groups, so that work without a token sees the same.

    What a process has written it does not write again; what counts is the store, where a newer token wins.
    """

    def __init__(self, store: GroupStore, groups: GroupDirectory) -> None:
        self._store = store
        self._groups = groups
        self._written: Bounded[tuple[str, str], ClaimedSet] = Bounded(MOST_KNOWN)

    async def note(self, caller: Caller, names: frozenset[str], issued_at: int) -> None:
        """Note the groups that a token of the caller names.

        Raises:
            Unavailable: the database is away.
        """
        who, said = (caller.tenant, caller.user_id), ClaimedSet(digest_names(names), issued_at)
        written = self._written.find(who)
        if written is not None and (said == written or issued_at < written.issued_at):
            return
        groups = {name: self._groups.make(caller.tenant, name, GroupSource.CLAIM) for name in names}
        await self._store.set_claimed(*who, groups, said)
        self._written.put(who, said)


def _no_such_group(group_id: str) -> NotFound:
    return NotFound(f"There is no group '{group_id}'.", param="group_id")


def _name_taken(name: str) -> Conflict:
    return Conflict(f"There is a group '{name}' already; take another name.", param="name")
