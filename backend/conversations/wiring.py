"""The services of conversations, built over the database and the store of knowledge bases."""

from dataclasses import dataclass

from backend.conversations.ports.conversations import ConversationStore, TurnStore
from backend.conversations.ports.waiting_turns import WaitingTurnStore
from backend.conversations.services.conversation_access import ConversationAccess
from backend.conversations.services.conversation_members import ConversationMembers
from backend.conversations.services.conversations import CallerConversations
from backend.conversations.services.withheld_turns import WithheldText
from backend.conversations.sql.conversations import SqlConversationStore
from backend.conversations.sql.turns import SqlTurnStore
from backend.conversations.sql.waiting_turns import SqlWaitingTurnStore
from backend.foundation.services.parts import Part
from backend.foundation.sql.database import Database
from backend.knowledge.ports.knowledge import LabelsOfTurns
from backend.knowledge.services.knowledge_access import LabelAccess
from shared.clock import Clock


@dataclass(frozen=True)
class ConversationPackage:
    """What the package adds to the process, and what the packages above build their use cases over."""

    part: Part
    store: ConversationStore
    turns: TurnStore
    waiting: WaitingTurnStore
    access: ConversationAccess
    withheld: WithheldText
    own: CallerConversations


def open_turn_labels(database: Database) -> LabelsOfTurns:
    """Return what reads the labels of turns."""
    return SqlConversationStore(database).labels_of_turns


def build_conversations(database: Database, labelled: LabelAccess, clock: Clock, secret: str) -> ConversationPackage:
    """Build the package; `secret` keys the cache keys that providers see."""
    store, turns = SqlConversationStore(database), SqlTurnStore(database)
    withheld, access = WithheldText(store, labelled), ConversationAccess(store, turns)
    own = CallerConversations(store, clock, secret)
    part = Part((own, ConversationMembers(store, access), withheld))
    return ConversationPackage(part, store, turns, SqlWaitingTurnStore(database), access, withheld, own)
