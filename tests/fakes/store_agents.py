"""An in-memory `AgentStore`."""

from collections.abc import Mapping, Sequence

from backend.agents.domain.agent import Agent, AgentDefinition, AgentRole, KnownAgent
from backend.agents.ports.agents import AgentEntry
from backend.groups.domain import group_in
from shared.errors import Conflict, NotFound
from tests.fakes.store_groups import FakeGroupStore


class FakeAgentStore:
    """Keeps agents by id."""

    def __init__(self) -> None:
        self._agents: dict[str, Agent] = {}
        self._members: dict[str, dict[str, AgentRole]] = {}
        self.groups = FakeGroupStore()

    async def find(self, tenant: str, user_id: str, names: Sequence[str]) -> tuple[KnownAgent, ...]:
        return tuple(known for known in self._known(tenant, user_id) if known.agent.name in names)

    async def usable(self, tenant: str, user_id: str) -> tuple[AgentEntry, ...]:
        known = self._known(tenant, user_id)
        return tuple(AgentEntry(each.agent.name, each.agent.created_at) for each in known if each.is_usable)

    async def usable_among(self, tenant: str, user_id: str, agent_ids: Sequence[str]) -> frozenset[str]:
        known = self._known(tenant, user_id)
        return frozenset(each.agent.id for each in known if each.is_usable and each.agent.id in agent_ids)

    async def create(self, agent: Agent, owner_id: str, most: int) -> bool:
        names = [each.name for each in self._agents.values() if each.tenant == agent.tenant]
        if len(names) >= most:
            raise Conflict(f"This tenant has {most} agents.", param="name")
        if agent.name in names:
            return False
        self._agents[agent.id] = agent
        self._members[agent.id] = {owner_id: AgentRole.OWNER}
        return True

    async def change(self, agent_id: str, definition: AgentDefinition) -> None:
        """Replace what an agent consists of, whatever that was."""
        assert await self.replace(agent_id, definition, self._agents[agent_id].definition)

    async def replace(self, agent_id: str, definition: AgentDefinition, instead_of: AgentDefinition) -> bool:
        if agent_id not in self._agents or self._agents[agent_id].definition != instead_of:
            return False
        self._agents[agent_id] = self._agents[agent_id].model_copy(update={"definition": definition})
        return True

    async def delete(self, agent_id: str) -> None:
        self._agents.pop(agent_id, None)
        self._members.pop(agent_id, None)

    async def members(self, agent_id: str) -> Mapping[str, AgentRole]:
        return dict(sorted(self._members.get(agent_id, {}).items()))

    async def set_member(self, agent_id: str, user_id: str, role: AgentRole) -> bool:
        before = self._held(agent_id)
        self._require_owner_in({**before, user_id: role})
        is_new = user_id not in before
        before[user_id] = role
        return is_new

    async def remove_member(self, agent_id: str, user_id: str) -> bool:
        before = self._held(agent_id)
        if user_id not in before:
            return False
        self._require_owner_in({other: role for other, role in before.items() if other != user_id})
        del before[user_id]
        return True

    def _known(self, tenant: str, user_id: str) -> list[KnownAgent]:
        mine = [each for each in self._agents.values() if each.tenant == tenant]
        ordered = sorted(mine, key=lambda agent: agent.name)
        return [KnownAgent(agent=agent, role=self._role(agent, user_id)) for agent in ordered]

    def _role(self, agent: Agent, user_id: str) -> AgentRole | None:
        names = {user_id, *self.groups.named(agent.tenant, user_id)}
        ways = [role for name, role in self._members[agent.id].items() if name in names]
        return min(ways, key=lambda role: role.rights, default=None)

    def _held(self, agent_id: str) -> dict[str, AgentRole]:
        if agent_id not in self._members:
            raise NotFound("The agent was deleted meanwhile.", param="name")
        return self._members[agent_id]

    def _require_owner_in(self, members: Mapping[str, AgentRole]) -> None:
        owners = [group_in(name) for name, role in members.items() if role is AgentRole.OWNER]
        if not any(group_id is None or self.groups.has_anybody(group_id) for group_id in owners):
            raise Conflict("An agent keeps at least one owner.", param="role")
