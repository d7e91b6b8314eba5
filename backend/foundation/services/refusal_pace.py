"""The pace of refusals: they take little of a process, however many are asked for."""

from collections.abc import Callable

from backend.foundation.domain.bounded import Bounded

MOST_PACED = 10_000
REFUSALS_A_SECOND = 50
REFUSALS_AT_ONCE = 10
LONGEST_DELAY_SECONDS = 5.0
_BURST_SECONDS = REFUSALS_AT_ONCE / REFUSALS_A_SECOND


class RefusalPace:
    """Spreads the refusals for one and the same reason over time: so many a second, after so many at once.

    A client that sends a request after each answer is thereby slowed, however many it sends at a time. The reason
    is the name of what has run out, or one for all who are unknown. `now` is a clock that nobody sets.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._due: Bounded[str, float] = Bounded(MOST_PACED)

    def delay_seconds(self, reason: str) -> float:
        """Return how long the next refusal for a reason is to be held back."""
        now = self._now()
        due = max(self._due.find(reason) or now, now)
        delay = min(LONGEST_DELAY_SECONDS, max(0.0, due - now - _BURST_SECONDS))
        latest = now + LONGEST_DELAY_SECONDS + _BURST_SECONDS
        self._due.put(reason, min(latest, due + 1 / REFUSALS_A_SECOND))
        return delay
