"""The ports that the services of turns share."""

from dataclasses import dataclass

from backend.chat_shell_client.ports.chat_shell import ChatShell
from backend.conversations.ports.conversations import ConversationStore, TurnStore
from backend.conversations.ports.waiting_turns import WaitingTurnStore
from backend.conversations.services.conversation_access import ConversationAccess
from backend.conversations.services.withheld_turns import WithheldText
from backend.foundation.services.supervision import Supervisor
from backend.restricted.services.outgoing_check import OutgoingCheck
from backend.streams.ports.events import EventLog, StopSignals
from backend.turns.ports.observer import TurnObserver
from backend.turns.services.run.lease import TurnLease
from shared.clock import Clock


@dataclass(frozen=True)
class StoredTurns:
    """What is stored of conversations and their turns, who may read it, and the lease of this process on its turns."""

    conversations: ConversationStore
    turns: TurnStore
    waiting: WaitingTurnStore
    withheld: WithheldText
    lease: TurnLease

    def access(self) -> ConversationAccess:
        """Build what finds the conversations and responses of callers."""
        return ConversationAccess(self.conversations, self.turns)


@dataclass(frozen=True)
class TurnPorts:
    """The ports that turns use once they are prepared."""

    stored: StoredTurns
    chat_shell: ChatShell
    events: EventLog
    signals: StopSignals
    clock: Clock
    observer: TurnObserver
    outgoing: OutgoingCheck
    background: Supervisor
