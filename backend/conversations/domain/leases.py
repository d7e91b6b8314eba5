"""Leases on turns: which process may write a turn, and when another may take it over."""

from backend.conversations.domain.responses import StoredResponse
from shared.models.values import Value


class LeaseTerms(Value):
    """The lengths of the lease that a replica holds on all its turns, in the time of the database.

    A renewal that comes more than `gap_seconds` after the one before was held up: then the database may have been away,
    and the leases of others may be old for no fault of theirs. The whole of `beat_seconds`, `gap_seconds` and
    `fresh_seconds` is shorter than the lease, so that a healthy holder is never judged.
    """

    seconds: float

    @property
    def beat_seconds(self) -> float:
        """The pause between two renewals."""
        return self.seconds * 2 / 9

    @property
    def renewal_seconds(self) -> float:
        """How long one renewal may take: of one that hangs, another can still be tried before the lease has ended."""
        return self.beat_seconds

    @property
    def gap_seconds(self) -> float:
        """The longest time between two renewals after which a replica still judges others."""
        return self.seconds * 4 / 9

    @property
    def fresh_seconds(self) -> float:
        """The age that the own renewal of a replica may have when it judges others."""
        return self.seconds / 9


class TakenTurn(Value):
    """A turn that a process has just taken over, with the fencing number under which it may write it.

    `plan` is what the turn's first process stored for others to continue it, None for a turn of an earlier release;
    `context_parts` is as in `NewTurn`.
    `settled_event` is the number of the newest event that belongs to what is in the log: of the input, and of complete
    exchanges with tools.
    """

    response: StoredResponse
    plan: str | None
    context_parts: str | None
    settled_event: int | None
