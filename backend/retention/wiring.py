"""Retention, and what is done about one person, built over the database and the use cases of other packages."""

from dataclasses import dataclass

from backend.agents.services.agents import AgentCatalogue
from backend.conversations.ports.conversations import ConversationStore
from backend.conversations.services.conversations import ConversationServices
from backend.files.services import Files
from backend.foundation.sql.database import Database
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.retention.domain import RetentionTerms
from backend.retention.ports import PersonStore
from backend.retention.services.exporting import PersonExport
from backend.retention.services.sweeping import Retention
from backend.retention.services.user_erasure import UserErasure
from backend.retention.sql.expiry import SqlExpiryStore
from backend.retention.sql.people import SqlPersonStore
from backend.retention.telemetry.sweeps import LoggingRetention
from backend.turns.services.responses import Responses
from shared.clock import Clock


@dataclass(frozen=True)
class RetentionPackage:
    """What sweeps, and the stores beneath the routes about persons."""

    retention: Retention
    people: PersonStore
    conversations: ConversationStore
    knowledge: KnowledgeStore

    def services(
        self, agents: AgentCatalogue, conversations: ConversationServices, responses: Responses, files: Files
    ) -> tuple[UserErasure, PersonExport]:
        """Build what the routes call, over the use cases of callers."""
        erasure = UserErasure(self.people, self.conversations, self.knowledge, agents, responses)
        return erasure, PersonExport(self.people, conversations, responses, files, agents, self.knowledge)


def build_retention(
    database: Database,
    terms: RetentionTerms,
    clock: Clock,
    conversations: ConversationStore,
    knowledge: KnowledgeStore,
) -> RetentionPackage:
    """Build the package."""
    expiry, people = SqlExpiryStore(database, conversations, clock), SqlPersonStore(database, conversations, clock)
    sweeping = Retention(expiry, conversations, terms, clock, LoggingRetention())
    return RetentionPackage(sweeping, people, conversations, knowledge)
