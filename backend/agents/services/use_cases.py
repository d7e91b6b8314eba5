"""The use cases of agents, as one value for the application and the HTTP routes."""

from dataclasses import dataclass

from backend.agents.services.agent_members import AgentMembers
from backend.agents.services.agents import AgentCatalogue


@dataclass(frozen=True)
class AgentServices:
    """The use cases of callers."""

    agents: AgentCatalogue
    members: AgentMembers
