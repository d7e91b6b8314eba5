"""The port to stored agents and their members."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from backend.agents.domain.agent import Agent, AgentDefinition, AgentRole, KnownAgent


class AgentEntry(NamedTuple):
    """An agent in a list."""

    name: str
    created_at: datetime


class AgentStore(Protocol):
    """Agents and members; every method raises Unavailable while the database is away."""

    async def find(self, tenant: str, user_id: str, names: Sequence[str]) -> tuple[KnownAgent, ...]:
        """Return those of a tenant's agents, by name, with the user's role; access is not checked."""
        ...

    async def usable(self, tenant: str, user_id: str) -> tuple[AgentEntry, ...]:
        """Return the agents that a user may use, by name (code points)."""
        ...

    async def usable_among(self, tenant: str, user_id: str, agent_ids: Sequence[str]) -> frozenset[str]:
        """Return those of the agents, by id, that a user may use."""
        ...

    async def create(self, agent: Agent, owner_id: str, most: int) -> bool:
        """Store an agent and its first owner; return False where the name is taken.

        Raises:
            Conflict: the tenant has `most` agents.
        """
        ...

    async def replace(self, agent_id: str, definition: AgentDefinition, instead_of: AgentDefinition) -> bool:
        """Replace what an agent consists of; False where it was deleted, or consists of something else by now."""
        ...

    async def delete(self, agent_id: str) -> None:
        """Delete an agent with its members."""
        ...

    async def members(self, agent_id: str) -> Mapping[str, AgentRole]:
        """Return roles by user id, and by what stands for groups (`name_group`), in their order."""
        ...

    async def set_member(self, agent_id: str, user_id: str, role: AgentRole) -> bool:
        """Add a member or change their role; return whether they are new.

        Raises:
            Conflict: the agent would be left without an owner.
            NotFound: the agent was deleted.
        """
        ...

    async def remove_member(self, agent_id: str, user_id: str) -> bool:
        """Remove a member; False when there was none.

        Raises:
            Conflict: the agent would be left without an owner.
            NotFound: the agent was deleted.
        """
        ...
