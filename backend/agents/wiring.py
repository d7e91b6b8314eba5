"""The services of agents, built over the database."""

from dataclasses import dataclass
from functools import partial

from backend.agents.services.agent_files import AgentFiles
from backend.agents.services.agents import AgentCatalogue, AgentMembers, AgentPresets, open_agent_files
from backend.agents.sql.store import SqlAgentStore
from backend.chat_shell_client.ports.chat_shell import ChatShell
from backend.foundation.services.parts import Part
from backend.foundation.sql.database import Database
from backend.knowledge.ports.knowledge import KnowledgeStore, LabelsOfTurns, OpenFileIndexes
from backend.knowledge.services.knowledge_access import LabelAccess
from backend.turns.services.request.model_catalogue import ModelCatalogue
from backend.turns.services.request.model_names import ModelNames
from backend.turns.services.request.tool_catalogue import ToolCatalogue
from shared.clock import Clock


@dataclass(frozen=True)
class AgentPackage:
    """What the package adds to the process, the names of models and agents, and who may read what agents have."""

    part: Part
    models: ModelNames
    presets: AgentPresets
    agents: AgentCatalogue
    labelled: LabelAccess
    open_files: OpenFileIndexes


def build_agents(
    database: Database,
    knowledge: KnowledgeStore,
    chat_shell: ChatShell,
    files: AgentFiles,
    labels_of_turns: LabelsOfTurns,
    clock: Clock,
) -> AgentPackage:
    """Build the package."""
    store = SqlAgentStore(database)
    presets = AgentPresets(store)
    models = ModelNames(ModelCatalogue(chat_shell, clock), presets)
    agents = AgentCatalogue(store, knowledge, models, ToolCatalogue(chat_shell, clock), files, clock)
    open_files = partial(open_agent_files, store)
    labelled = LabelAccess(knowledge, open_files, labels_of_turns)
    part = Part((agents, AgentMembers(store)))
    return AgentPackage(part, models, presets, agents, labelled, open_files)
