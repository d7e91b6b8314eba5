"""The ports that the services of turns share."""

from dataclasses import dataclass

from backend.chat_shell_client.ports.chat_shell import ChatShell
from backend.conversations.ports.conversations import ConversationStore, TurnStore
from backend.conversations.ports.waiting_turns import WaitingTurnStore
from backend.conversations.services.withheld_turns import WithheldText
from backend.extraction.ports import DocumentReader
from backend.foundation.services.supervision import Supervisor
from backend.limits.services.turn_rates import TurnRates
from backend.restricted.services.outgoing_check import OutgoingCheck
from backend.streams.ports.events import EventLog, StopSignals
from backend.turns.ports.files_by_id import FilesById, FilesOfAgents
from backend.turns.ports.observer import TurnObserver
from backend.turns.services.run.lease import TurnLease
from shared.clock import Clock


@dataclass(frozen=True)
class TurnPorts:
    """The ports that turns use; without `files` users can store none, without `agent_files` agents have none."""

    chat_shell: ChatShell
    conversations: ConversationStore
    turns: TurnStore
    waiting: WaitingTurnStore
    events: EventLog
    signals: StopSignals
    clock: Clock
    observer: TurnObserver
    outgoing: OutgoingCheck
    lease: TurnLease
    background: Supervisor
    documents: DocumentReader
    withheld: WithheldText
    rates: TurnRates
    files: FilesById | None = None
    agent_files: FilesOfAgents | None = None
