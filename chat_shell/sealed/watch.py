"""What operators may see of the room: codes, counts and what was released, and no protected text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from shared.models.safe_summary import Decision, Failure, GateCode, Reason


@dataclass(frozen=True, slots=True)
class SummaryStarted:
    """Evidence is there, and the secondary model is about to be asked."""

    knowledge_base_ids: tuple[str, ...]
    query_characters: int
    chunks_found: int
    chunks_sent: int


@dataclass(frozen=True, slots=True)
class SummaryCompleted:
    """How a restricted search ended; `preview` is the beginning of what was released, or empty."""

    knowledge_base_ids: tuple[str, ...]
    decision: Decision
    reason: Reason
    gate_codes: tuple[GateCode, ...]
    rewrites: int
    canary_hits: int
    latency_ms: int
    preview: str


@dataclass(frozen=True, slots=True)
class OutcomeSent:
    """The outcome is on its way to the backend."""

    search_id: str | None
    completed: SummaryCompleted


@dataclass(frozen=True, slots=True)
class OutcomeAnswered:
    """The backend's answer; `status` is None where none came. `moved` says why it may not be released after all."""

    search_id: str | None
    status: int | None
    recorded: bool
    release: bool
    moved: Failure | None


@dataclass(frozen=True, slots=True)
class ModelAsked:
    """A request to the secondary model, each chunk in it replaced by where it is from and how long it is."""

    model: str
    messages: tuple[Mapping[str, str], ...]
    body_bytes: int


@dataclass(frozen=True, slots=True)
class ModelAnswered:
    """A reply's size, and what became of it: `answer`, `refuse`, `blocked`, or the code of a failure."""

    model: str
    reply_bytes: int
    decision: str


class RoomObserver(Protocol):
    """Told what happens in the room; must not raise and must not block."""

    def summary_started(self, started: SummaryStarted) -> None:
        """A safe summary begins."""
        ...

    def summary_completed(self, completed: SummaryCompleted) -> None:
        """A restricted search ended, in whichever way."""
        ...

    def outcome_sent(self, sent: OutcomeSent) -> None:
        """The outcome is sent to be recorded."""
        ...

    def outcome_answered(self, answered: OutcomeAnswered) -> None:
        """It was recorded, or not."""
        ...

    def model_asked(self, asked: ModelAsked) -> None:
        """The secondary model is asked."""
        ...

    def model_answered(self, answered: ModelAnswered) -> None:
        """The secondary model has answered, or failed."""
        ...
