"""Measuring how soon and how evenly the text of a turn comes, and the calls of its client's functions."""

from datetime import datetime

from backend.turns.ports.observer import TurnObserver
from shared.models.events import FunctionCallDelta, ReasoningDelta, TextDelta

DELTAS = (TextDelta, ReasoningDelta, FunctionCallDelta)


class DeltaMeter:
    """Tells the observer of the deltas of one turn, which was asked for at `received_at`."""

    def __init__(self, observer: TurnObserver, received_at: datetime) -> None:
        self._observer = observer
        self._received_at = received_at
        self._newest_at: datetime | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the first delta has come."""
        return self._newest_at is not None

    def feed(self, count: int, now: datetime) -> None:
        """Count deltas that have just come together."""
        if not count:
            return
        if self._newest_at is None:
            self._observer.first_delta((now - self._received_at).total_seconds())
        else:
            self._observer.deltas(count, (now - self._newest_at).total_seconds())
        self._newest_at = now
