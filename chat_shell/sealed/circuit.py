"""The circuit breaker for a secondary model that repeats canaries: while it is open, the model is not asked."""

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta

WINDOW = timedelta(hours=1)


class CanaryCircuit:
    """Opens at `limit` replies with canaries within an hour.

    It counts the replies of this process, also those that could not be recorded; the backend counts those of all
    processes.
    """

    def __init__(self, limit: int, now: Callable[[], datetime]):
        self._limit = limit
        self._now = now
        self._hits: dict[str, deque[datetime]] = {}

    def record_hit(self, model: str) -> None:
        """Remember that a reply of this model held canaries."""
        self._hits.setdefault(model, deque(maxlen=self._limit)).append(self._now())

    def is_open(self, model: str, recorded: int = 0) -> bool:
        """Whether the model must not be asked now; `recorded` is the backend's count of the last hour."""
        hits = self._hits.get(model, ())
        oldest_counted = self._now() - WINDOW
        return max(recorded, sum(hit > oldest_counted for hit in hits)) >= self._limit
