"""The members of a base and their roles."""

from collections.abc import Mapping

from backend.identity.domain import Caller
from backend.knowledge.domain.access import require_owner, require_read
from backend.knowledge.domain.knowledge import MemberRole
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.knowledge_access import find_binding
from shared.errors import NotFound


class KnowledgeMembers:
    """Members of bases; only owners change them, restricted members do not see them."""

    def __init__(self, store: KnowledgeStore) -> None:
        self._store = store

    async def all(self, caller: Caller, base_id: str) -> Mapping[str, MemberRole]:
        """Return the members' roles by user id.

        Raises:
            NotFound: the caller is not a member.
            PermissionDenied: the caller is restricted.
        """
        require_read(await find_binding(self._store, caller, base_id))
        return await self._store.members(base_id)

    async def find(self, caller: Caller, base_id: str, user_id: str) -> MemberRole:
        """Return one member's role.

        Raises:
            NotFound: the caller or the user is not a member.
            PermissionDenied: the caller is restricted.
        """
        role = (await self.all(caller, base_id)).get(user_id)
        if role is None:
            raise NotFound("There is no such member.", param="user_id")
        return role

    async def set(self, caller: Caller, base_id: str, user_id: str, role: MemberRole) -> bool:
        """Add a member or change their role; return whether the member is new.

        Raises:
            NotFound: the caller is not a member.
            PermissionDenied: the caller is not an owner.
            Conflict: no owner would be left.
        """
        require_owner(await find_binding(self._store, caller, base_id))
        is_new = user_id not in await self._store.members(base_id)
        await self._store.set_member(base_id, user_id, role)
        return is_new

    async def remove(self, caller: Caller, base_id: str, user_id: str) -> None:
        """Remove a member.

        Raises:
            NotFound: the caller or the user is not a member.
            PermissionDenied: the caller is not an owner.
            Conflict: no owner would be left.
        """
        require_owner(await find_binding(self._store, caller, base_id))
        if not await self._store.remove_member(base_id, user_id):
            raise NotFound("There is no such member.", param="user_id")
