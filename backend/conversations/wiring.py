"""The services of conversations, built over the database and the store of knowledge bases."""

from dataclasses import dataclass

from backend.conversations.ports.conversations import ConversationStore, TurnStore
from backend.conversations.ports.waiting_turns import WaitingTurnStore
from backend.conversations.services.conversation_access import ConversationAccess
from backend.conversations.services.conversation_members import ConversationMembers
from backend.conversations.services.conversations import CallerConversations, ConversationServices
from backend.conversations.services.withheld_turns import WithheldText
from backend.conversations.sql.conversations import SqlConversationStore
from backend.conversations.sql.turns import SqlTurnStore
from backend.conversations.sql.waiting_turns import SqlWaitingTurnStore
from backend.foundation.sql.database import Database
from backend.knowledge.services.knowledge_access import LabelAccess
from shared.clock import Clock


@dataclass(frozen=True)
class ConversationPackage:
    """The use cases of conversations, and the stores over which turns build its own."""

    store: ConversationStore
    turns: TurnStore
    waiting: WaitingTurnStore
    access: ConversationAccess
    services: ConversationServices


def build_conversations(database: Database, labelled: LabelAccess, clock: Clock, secret: str) -> ConversationPackage:
    """Build the package; `secret` keys the cache keys that providers see."""
    store, turns = SqlConversationStore(database), SqlTurnStore(database)
    withheld, access = WithheldText(store, labelled), ConversationAccess(store, turns)
    services = ConversationServices(
        conversations=CallerConversations(store, clock, secret),
        members=ConversationMembers(store, access),
        withheld=withheld,
    )
    return ConversationPackage(store, turns, SqlWaitingTurnStore(database), access, services)
