"""The services of agents, built over the database."""

from backend.agents.services.agent_members import AgentMembers
from backend.agents.services.agents import Agents
from backend.agents.services.use_cases import AgentServices
from backend.agents.sql.store import SqlAgentStore
from backend.foundation.sql.database import Database
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.turns.services.model_names import ModelNames
from shared.clock import Clock


def agent_store(database: Database) -> SqlAgentStore:
    """Build the store, which turns read presets from."""
    return SqlAgentStore(database)


def agent_services(store: SqlAgentStore, knowledge: KnowledgeStore, models: ModelNames, clock: Clock) -> AgentServices:
    """Build the use cases."""
    return AgentServices(agents=Agents(store, knowledge, models, clock), members=AgentMembers(store))
