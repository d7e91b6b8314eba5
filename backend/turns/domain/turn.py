"""A turn that is about to run, and a response that joins several."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from backend.conversations.domain.conversation_log import Entry, EpochState, newest_epoch_state
from backend.conversations.domain.history_fingerprint import HistoryFingerprint
from backend.conversations.domain.responses import NewTurn, StoredResponse
from backend.conversations.domain.waiting_turns import Entered
from backend.openai_api.domain.response_events import LoggedEvent
from backend.openai_api.domain.shown_output import ShownOutput
from backend.prompt.domain.turn_record import TurnRecord
from shared.models.events import ModelCard, Usage
from shared.models.execution import ExecutionRequest


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

    `request` is its first one in this process. `log` is the log until here, with the turn's input; its own entries go
    behind, and its output items from `next_sequence` on. A turn that is not stored writes nothing but events, which are
    dropped once it has ended and nobody reads. `starts_epoch` says that its epoch began with it. `seen` is what the
    client has seen with the turn's input; it is not known of a turn that was taken over. `card` describes its model,
    where that is known.
    """

    record: TurnRecord
    request: ExecutionRequest
    log: tuple[Entry, ...]
    next_sequence: int
    is_stored: bool
    starts_epoch: bool
    begun: ResumeState | None = None
    seen: HistoryFingerprint | None = None
    card: ModelCard | None = None

    @property
    def response(self) -> StoredResponse:
        """Its response, as it was stored."""
        return self.record.response

    @property
    def with_results(self) -> bool:
        """Whether clients are shown what knowledge tools have found."""
        return self.record.with_results

    @cached_property
    def epoch(self) -> EpochState:
        """What its epoch began with."""
        return newest_epoch_state(self.log)

    @property
    def has_shown_compaction(self) -> bool:
        """Whether clients were told that an earlier part of the conversation is left out of this turn."""
        items = self.begun.shown.items if self.begun is not None else ()
        return any(isinstance(item, dict) and item["type"] == "compaction" for item in items)

    @property
    def declared_reset(self) -> str | None:
        """Why its first call need not extend what was sent before; an epoch that a void turn began is new here, too."""
        if self.request.added:
            return None
        sent = self.record.conversation.sent
        is_new = self.starts_epoch or (sent is not None and sent.epoch != self.request.epoch)
        return self.epoch.reason if is_new else None


class StartableTurn(NamedTuple):
    """A turn, and the rows to store before it runs; `branch` prepares it anew where another turn was faster."""

    turn: Turn
    rows: NewTurn
    branch: "Callable[[], Awaitable[StartableTurn]] | None"


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
