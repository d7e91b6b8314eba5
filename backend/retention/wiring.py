"""Retention, and what is done about one person, built over the database and the use cases of other packages."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from backend.agents.services.agents import AgentCatalogue
from backend.conversations.ports.conversations import ConversationStore
from backend.foundation.services.parts import Loop, Part
from backend.foundation.sql.database import Database
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.retention.domain import Person, RetentionTerms
from backend.retention.ports import PersonStore
from backend.retention.services.exporting import PersonExport, PersonTexts
from backend.retention.services.sweeping import SWEEP_SECONDS, Retention
from backend.retention.services.user_erasure import UserErasure
from backend.retention.sql.expiry import SqlExpiryStore
from backend.retention.sql.people import SqlPersonStore, find_owned_alone
from backend.retention.telemetry.sweeps import LoggingRetention
from backend.turns.services.responses import Responses
from shared.clock import Clock


@dataclass(frozen=True)
class RetentionPackage:
    """What sweeps, and the stores beneath what is done about persons."""

    retention: Retention
    people: PersonStore
    conversations: ConversationStore
    knowledge: KnowledgeStore

    def part(
        self,
        agents: AgentCatalogue,
        responses: Responses,
        texts: PersonTexts,
        forget_keys: Callable[[], Awaitable[None]],
    ) -> Part:
        """Return what the package adds to the process, over the use cases of callers."""
        erasure = UserErasure(self.people, self.conversations, self.knowledge, agents, responses, forget_keys)
        export = PersonExport(self.people, texts, agents, self.knowledge)
        return Part((erasure, export), (Loop("retention", self.retention.sweep, SWEEP_SECONDS),))


async def list_owned_alone(database: Database, tenant: str, member: str) -> Sequence[str]:
    """Return the bases and agents that a member of a tenant owns alone, by their ids and names."""
    owned = await find_owned_alone(database, Person(tenant, member))
    return (*owned.base_ids, *owned.agent_names)


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
