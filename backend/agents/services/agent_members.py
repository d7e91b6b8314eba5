"""The members of an agent and their roles."""

from collections.abc import Mapping

from backend.agents.domain.agent import AgentRole
from backend.agents.ports.agents import AgentStore
from backend.agents.services.agent_access import find_agent, require_agent_owner
from backend.identity.domain import Caller
from shared.errors import NotFound, PermissionDenied


class AgentMembers:
    """Members of agents: they see each other, and only owners change them."""

    def __init__(self, store: AgentStore) -> None:
        self._store = store

    async def all(self, caller: Caller, name: str) -> Mapping[str, AgentRole]:
        """Return the members' roles by user id.

        Raises:
            NotFound: the caller may not use the agent.
            PermissionDenied: the caller uses it without being a member.
        """
        known = await find_agent(self._store, caller, name)
        if known.role is None:
            raise PermissionDenied("Only members of this agent see its members.")
        return await self._store.members(known.agent.id)

    async def find(self, caller: Caller, name: str, user_id: str) -> AgentRole:
        """Return one member's role.

        Raises:
            NotFound: the caller may not use the agent, or the user is no member.
            PermissionDenied: the caller uses it without being a member.
        """
        role = (await self.all(caller, name)).get(user_id)
        if role is None:
            raise _no_such_member(user_id)
        return role

    async def set(self, caller: Caller, name: str, user_id: str, role: AgentRole) -> bool:
        """Add a member or change their role; return whether they are new.

        Raises:
            NotFound: the caller may not use the agent.
            PermissionDenied: the caller is no owner.
            Conflict: no owner would be left.
        """
        known = await find_agent(self._store, caller, name)
        require_agent_owner(known)
        return await self._store.set_member(known.agent.id, user_id, role)

    async def remove(self, caller: Caller, name: str, user_id: str) -> None:
        """Remove a member.

        Raises:
            NotFound: the caller may not use the agent, or the user is no member.
            PermissionDenied: the caller is no owner.
            Conflict: no owner would be left.
        """
        known = await find_agent(self._store, caller, name)
        require_agent_owner(known)
        if not await self._store.remove_member(known.agent.id, user_id):
            raise _no_such_member(user_id)


def _no_such_member(user_id: str) -> NotFound:
    return NotFound(f"There is no member '{user_id}'; the list of members names those there are.", param="user_id")
