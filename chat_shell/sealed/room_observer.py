"""What operators may see of the room: codes, counts and what was released, and no protected text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from chat_shell.sealed.outcome import Outcome
from shared.models.safe_summary import Failure


@dataclass(frozen=True, slots=True)
class SummaryStarted:
    """There is evidence, and the secondary model is about to be asked."""

    knowledge_base_ids: tuple[str, ...]
    query_characters: int
    chunks_found: int
    chunks_sent: int


@dataclass(frozen=True, slots=True)
class OutcomeAnswered:
    """The backend's answer to an outcome; `status` is None where none came.

    `changed` says which change of access or knowledge base forbids the release after all.
    """

    search_id: str | None
    status: int | None
    recorded: bool
    release: bool
    changed: Failure | None


@dataclass(frozen=True, slots=True)
class SecondaryAsked:
    """A request to the secondary model, each chunk in it replaced by its knowledge base and its length."""

    model: str
    messages: tuple[Mapping[str, str], ...]
    body_bytes: int


@dataclass(frozen=True, slots=True)
class SecondaryAnswered:
    """A reply's size, and what became of it: `answer`, `refuse`, `blocked`, or the code of a failure."""

    model: str
    reply_bytes: int
    decision: str


class RoomObserver(Protocol):
    """Told what happens in the room; must not raise and must not block."""

    def summary_started(self, started: SummaryStarted) -> None:
        """A safe summary begins."""
        ...

    def summary_completed(self, outcome: Outcome) -> None:
        """A restricted search ended, in whichever way."""
        ...

    def outcome_sent(self, outcome: Outcome) -> None:
        """The outcome is sent to the backend, to be recorded."""
        ...

    def outcome_answered(self, answered: OutcomeAnswered) -> None:
        """The backend has recorded the outcome, or failed to."""
        ...

    def secondary_asked(self, asked: SecondaryAsked) -> None:
        """The secondary model is asked."""
        ...

    def secondary_answered(self, answered: SecondaryAnswered) -> None:
        """The secondary model has answered, or failed."""
        ...
