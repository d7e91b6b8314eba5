"""The services of agents, built over the database."""

from dataclasses import dataclass

from backend.agents.services.agent_members import AgentMembers
from backend.agents.services.agent_presets import AgentPresets
from backend.agents.services.agents import AgentCatalogue
from backend.agents.services.use_cases import AgentServices
from backend.agents.sql.store import SqlAgentStore
from backend.foundation.sql.database import Database
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.turns.services.model_catalogue import ModelCatalogue
from backend.turns.services.model_names import ModelNames
from shared.clock import Clock


@dataclass(frozen=True)
class AgentRoom:
    """The use cases of agents, and the names of models with those of agents among them, which turns read."""

    models: ModelNames
    services: AgentServices


def build_agent_room(
    database: Database, knowledge: KnowledgeStore, catalogue: ModelCatalogue, clock: Clock
) -> AgentRoom:
    """Build the room."""
    store = SqlAgentStore(database)
    models = ModelNames(catalogue, AgentPresets(store))
    services = AgentServices(agents=AgentCatalogue(store, knowledge, models, clock), members=AgentMembers(store))
    return AgentRoom(models, services)
