"""The values that the services of turns share: the ports, and a turn that is about to run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from backend.chat_shell_client.ports.chat_shell import ChatShell
from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.history_fingerprint import HistoryFingerprint
from backend.conversations.domain.model_calls import TailMessage
from backend.conversations.domain.placed_blocks import ANCHORED, Placement
from backend.conversations.domain.prompt_record import SentPrompt
from backend.conversations.domain.responses import StoredResponse
from backend.conversations.domain.waiting_turns import Entered
from backend.conversations.ports.conversations import ConversationStore, TurnStore
from backend.conversations.ports.waiting_turns import WaitingTurnStore
from backend.conversations.services.withheld_turns import WithheldText
from backend.extraction.ports import DocumentReader
from backend.foundation.services.supervision import Supervisor
from backend.limits.services.turn_rates import TurnRates
from backend.openai_api.domain.response_events import LoggedEvent
from backend.openai_api.domain.shown_output import ShownOutput
from backend.prompt.domain.prompt_tail import MovedBlock, tail_of
from backend.restricted.services.outgoing_check import OutgoingCheck
from backend.streams.ports.events import EventLog, StopSignals
from backend.turns.domain.turn_plan import InputPlaces
from backend.turns.ports.files_by_id import FilesById, FilesOfAgents
from backend.turns.ports.observer import TurnObserver
from backend.turns.services.lease import TurnLease
from shared.clock import Clock
from shared.models.events import ModelCard, Usage
from shared.models.execution import ExecutionRequest


@dataclass(frozen=True)
class TurnPorts:
    """The ports that turns use; without `files` users can store none, without `agent_files` agents have none.

    `rates` limits nothing unless it is given.
    """

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
    files: FilesById | None = None
    agent_files: FilesOfAgents | None = None
    rates: TurnRates = field(default_factory=TurnRates)


@dataclass(frozen=True)
class ResumeState:
    """What another process has done of a turn: what clients were shown, and the usage of the model calls before.

    `entered` are the messages that have entered it. `summaries` counts those of the calls that made a summary.
    `left_out` is what of the answers of the others could not be kept.
    """

    shown: ShownOutput
    usage: Usage
    entered: tuple[Entered, ...] = ()
    summaries: int = 0
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Turn:
    """A turn that has been stored and is about to run; `begun` is set where another process has begun it.

    `log` is the log until here, with the turn's input at `places`; its own entries go behind, and its output items from
    `next_sequence` on. A turn that is not
    stored writes nothing but events, which are dropped once it has ended and nobody reads. `epoch_reason` is why
    its epoch began, `starts_epoch` that it did with this turn. `keeps_context` says that its context message, if it
    has one, is in the log, `moved` holds the blocks of its agent that are not; `sent` is what the newest model call
    before it sent. `seen` is what the client has seen with the turn's input; it is not known of a turn that was taken
    over. `keeps_skills` is that of its epoch. `card` describes its model, where that is known.
    """

    request: ExecutionRequest
    response: StoredResponse
    log: tuple[Entry, ...]
    places: InputPlaces
    next_sequence: int
    is_stored: bool
    with_results: bool
    received_at: datetime
    epoch_reason: str
    starts_epoch: bool
    keeps_context: bool = False
    sent: SentPrompt | None = None
    begun: ResumeState | None = None
    seen: HistoryFingerprint | None = None
    moved: tuple[MovedBlock, ...] = ()
    placement: Placement = ANCHORED
    keeps_skills: bool = False

    card: ModelCard | None = None

    @property
    def has_shown_compaction(self) -> bool:
        """Whether clients were told that an earlier part of the conversation is left out of this turn."""
        items = self.begun.shown.items if self.begun is not None else ()
        return any(isinstance(item, dict) and item["type"] == "compaction" for item in items)

    @property
    def tail(self) -> tuple[TailMessage, ...]:
        """The messages of its first request that stand in no log."""
        return tail_of(self.request, self.moved, keeps_context=self.keeps_context)

    @property
    def declared_reset(self) -> str | None:
        """Why its first call need not extend what was sent before; an epoch that a void turn began is new here, too."""
        if self.request.added:
            return None
        is_new = self.starts_epoch or (self.sent is not None and self.sent.epoch != self.request.epoch)
        return self.epoch_reason if is_new else None


@dataclass(frozen=True)
class BegunJoin:
    """What another process has shown of a joined response.

    `newest` is the number of the newest event that clients may have got. `goes_on` says that later events can continue
    `events`; otherwise some of them are lost.
    """

    events: Sequence[LoggedEvent]
    newest: int
    goes_on: bool


@dataclass(frozen=True)
class JoinedTurn:
    """A response that joins those of several models, its lanes; a lane that was deleted is None.

    `begun` is set where another process has begun it. `is_stored` and `with_results` are as in `Turn`.
    """

    response: StoredResponse
    lanes: tuple[StoredResponse | None, ...]
    is_stored: bool
    with_results: bool
    begun: BegunJoin | None = None
