"""The port through which operators see codes, counts and released text of the sealed room, never protected text."""

from typing import Protocol

from chat_shell.sealed.backend_wire import OutcomeReceipt
from chat_shell.sealed.outcome import Outcome
from chat_shell.sealed.summary_prompt import Messages
from shared.models.safe_summary import Failure


class RoomObserver(Protocol):
    """Told what happens in the sealed room; must not raise and must not block."""

    def summary_started(self, base_ids: tuple[str, ...], *, query_characters: int, found: int, sent: int) -> None:
        """There is evidence, `found` chunks of it, and the secondary model is about to be asked with `sent` of them."""
        ...

    def summary_completed(self, outcome: Outcome) -> None:
        """A restricted search ended, in whichever way."""
        ...

    def outcome_sent(self, outcome: Outcome) -> None:
        """The outcome is sent to the backend, to be recorded."""
        ...

    def outcome_answered(self, search_id: str | None, receipt: OutcomeReceipt, changed: Failure | None) -> None:
        """The backend has answered; `changed` is the change of access or base that forbids the release after all."""
        ...

    def secondary_asked(self, model: str, messages: Messages, body_bytes: int) -> None:
        """The secondary model is asked; in `messages` each chunk is replaced by its base and its length."""
        ...

    def secondary_answered(self, model: str, reply_bytes: int, decision: str) -> None:
        """The secondary model has answered; `decision` is `answer`, `refuse`, `blocked`, or the code of a failure."""
        ...
