"""An in-memory `GroupStore`."""

from collections.abc import Collection, Mapping, Sequence

from backend.groups.domain import ClaimedSet, Group, GroupSource, name_group
from shared.errors import NotFound


class FakeGroupStore:
    """Keeps groups by id, and the user ids of each."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._users: dict[str, set[str]] = {}
        self._claimed: dict[tuple[str, str], ClaimedSet] = {}

    def named(self, tenant: str, user_id: str) -> frozenset[str]:
        """Return what stands for the groups of a user among members."""
        return frozenset(name_group(group_id) for group_id in self._of(tenant, user_id))

    def has_anybody(self, group_id: str) -> bool:
        return bool(self._users.get(group_id))

    async def create(self, group: Group) -> bool:
        if group.id in self._groups or self._same_name(group):
            return False
        self._groups[group.id], self._users[group.id] = group, set()
        return True

    async def find(self, tenant: str, group_ids: Collection[str]) -> Mapping[str, Group]:
        return {each.id: each for each in self._groups.values() if each.tenant == tenant and each.id in group_ids}

    async def page(
        self, tenant: str, of_user: str | None, after: Group | None, limit: int, *, descending: bool
    ) -> tuple[Group, ...]:
        found = [each for each in self._groups.values() if each.tenant == tenant]
        if of_user is not None:
            found = [each for each in found if of_user in self._users[each.id]]
        found.sort(key=_place, reverse=descending)
        if after is not None:
            found = [each for each in found if (_place(each) < _place(after)) == descending and each != after]
        return tuple(found[:limit])

    async def replace(self, group: Group) -> bool:
        if group.id not in self._groups or self._same_name(group):
            return False
        self._groups[group.id] = group
        return True

    async def delete(self, tenant: str, group_id: str) -> bool:
        if group_id not in await self.find(tenant, [group_id]):
            return False
        del self._groups[group_id], self._users[group_id]
        return True

    async def members(self, group_id: str, after: str, limit: int) -> Sequence[str]:
        return sorted(each for each in self._users.get(group_id, ()) if each > after)[:limit]

    async def change_members(self, group: Group, added: Collection[str], removed: Collection[str]) -> tuple[int, int]:
        if group.id not in self._groups:
            raise NotFound("There is no such group.", param="group_id")
        before = set(self._users[group.id])
        self._users[group.id] = (before | set(added)) - set(removed)
        return len(set(added) - before), len(before & set(removed))

    async def groups_of(self, tenant: str, user_id: str) -> frozenset[str]:
        return self._of(tenant, user_id)

    async def find_claimed(self, tenant: str, user_id: str) -> ClaimedSet | None:
        return self._claimed.get((tenant, user_id))

    async def set_claimed(self, tenant: str, user_id: str, names: Mapping[str, Group], said: ClaimedSet) -> None:
        before = self._claimed.get((tenant, user_id), ClaimedSet("", -1))
        if said.issued_at < before.issued_at:
            return
        for group in names.values():
            await self.create(group)
        of_tokens = [
            each for each in self._groups.values() if each.tenant == tenant and each.source is GroupSource.CLAIM
        ]
        for group in of_tokens:
            if group.name not in names:
                self._users[group.id].discard(user_id)
            elif said.issued_at > before.issued_at:
                self._users[group.id].add(user_id)
        self._claimed[tenant, user_id] = said

    def _of(self, tenant: str, user_id: str) -> frozenset[str]:
        return frozenset(
            each.id for each in self._groups.values() if each.tenant == tenant and user_id in self._users[each.id]
        )

    def _same_name(self, group: Group) -> bool:
        key = (group.tenant, group.source, group.name)
        return any(
            (each.tenant, each.source, each.name) == key and each.id != group.id for each in self._groups.values()
        )


def _place(group: Group) -> tuple[float, str]:
    return group.created_at.timestamp(), group.id
