"""The values that the services of turns share: the ports, and a turn that is about to run."""

from dataclasses import dataclass
from datetime import datetime

from backend.conversations.domain.prompt_record import SentPrompt
from backend.conversations.domain.responses import StoredResponse
from backend.conversations.domain.seen_chain import Chain
from backend.conversations.ports.conversations import ConversationStore, TurnStore
from backend.foundation.services.supervision import Supervisor
from backend.knowledge.ports.knowledge import DocumentReader
from backend.restricted.services.outgoing_check import OutgoingCheck
from backend.turns.domain.shown_output import ShownOutput
from backend.turns.ports.chat_shell import ChatShell
from backend.turns.ports.events import EventLog, StopSignals
from backend.turns.ports.files_by_id import FilesById
from backend.turns.ports.observer import TurnObserver
from backend.turns.services.lease import TurnLease
from shared.clock import Clock
from shared.models.events import Usage
from shared.models.execution import ExecutionRequest


@dataclass(frozen=True)
class TurnPorts:
    """The ports that turns use; without `files`, users can store none."""

    chat_shell: ChatShell
    conversations: ConversationStore
    turns: TurnStore
    events: EventLog
    signals: StopSignals
    clock: Clock
    observer: TurnObserver
    outgoing: OutgoingCheck
    lease: TurnLease
    background: Supervisor
    documents: DocumentReader
    files: FilesById | None = None


@dataclass(frozen=True)
class Begun:
    """What another process has done of a turn: what clients were shown, and the usage of the model calls before."""

    shown: ShownOutput
    usage: Usage


@dataclass(frozen=True)
class Turn:
    """A turn that has been stored and is about to run; `begun` is set where another process has begun it.

    `log_length` and `next_sequence` are where its own entries and output items go. A turn that is not
    stored writes nothing but events, which are dropped once it has ended and nobody reads. `epoch_reason` is why
    its epoch began, `starts_epoch` that it did with this turn. `keeps_context` says that its context message, if it
    has one, is in the log; `sent` is what the newest model call before it sent. `seen` is what the client has seen with
    the turn's input; it is not known of a turn that was taken over.
    """

    request: ExecutionRequest
    response: StoredResponse
    log_length: int
    next_sequence: int
    is_stored: bool
    with_results: bool
    received_at: datetime
    epoch_reason: str
    starts_epoch: bool
    keeps_context: bool = False
    sent: SentPrompt | None = None
    begun: Begun | None = None
    seen: Chain | None = None

    @property
    def declared_reset(self) -> str | None:
        """Why its first call need not extend what was sent before; an epoch that a void turn began is new here, too."""
        if self.request.added:
            return None
        is_new = self.starts_epoch or (self.sent is not None and self.sent.epoch != self.request.epoch)
        return self.epoch_reason if is_new else None
