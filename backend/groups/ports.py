"""The port to stored groups."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from backend.groups.domain import ClaimedSet, Group


class GroupStore(Protocol):
    """Groups and who is in them; every method raises Unavailable while the database is away."""

    async def create(self, group: Group) -> bool:
        """Store a group; return False where another of its tenant and source has the name."""
        ...

    async def find(self, tenant: str, group_ids: Collection[str]) -> Mapping[str, Group]:
        """Return those of a tenant's groups, by id."""
        ...

    async def page(
        self, tenant: str, of_user: str | None, after: Group | None, limit: int, *, descending: bool
    ) -> tuple[Group, ...]:
        """Return up to `limit` groups behind another one, by age: all of a tenant, or those that a user is in."""
        ...

    async def replace(self, group: Group) -> bool:
        """Give a group another name and external id; return False where another one has the name, or it is gone."""
        ...

    async def delete(self, tenant: str, group_id: str) -> bool:
        """Delete a group, and with it the rights of those who are in it; False where there is none."""
        ...

    async def members(self, group_id: str, after: str, limit: int) -> Sequence[str]:
        """Return up to `limit` user ids behind another one, in their order."""
        ...

    async def change_members(self, group: Group, added: Collection[str], removed: Collection[str]) -> tuple[int, int]:
        """Put users into a group and take users out; return how many were put in and taken out.

        Raises:
            NotFound: the group was deleted meanwhile.
        """
        ...

    async def groups_of(self, tenant: str, user_id: str) -> frozenset[str]:
        """Return the ids of the groups that a user is in."""
        ...

    async def find_claimed(self, tenant: str, user_id: str) -> ClaimedSet | None:
        """Return what the newest token of a user said."""
        ...

    async def set_claimed(self, tenant: str, user_id: str, names: Mapping[str, Group], said: ClaimedSet) -> None:
        """Put a user into these groups of tokens, and into no others, unless a newer token has said something.

        A group is stored as given where there is none of its name yet.
        """
        ...
