"""The circuit of a secondary model that repeats canaries: open, it is asked nothing more for a while."""

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta

WINDOW = timedelta(hours=1)


class CanaryCircuit:
    """Opens at `limit` replies with canaries within an hour.

    It remembers this process's own, also those that could not be recorded; of all processes the backend keeps count.
    """

    def __init__(self, limit: int, now: Callable[[], datetime]):
        self._limit = limit
        self._now = now
        self._hits: dict[str, deque[datetime]] = {}

    def record_hit(self, model: str) -> None:
        """Remember that a reply of this model held canaries."""
        self._hits.setdefault(model, deque(maxlen=self._limit)).append(self._now())

    def is_open(self, model: str, recorded: int = 0) -> bool:
        """Whether the model is not to be asked now, where the backend has so many on record within an hour."""
        hits = self._hits.get(model, ())
        oldest_counted = self._now() - WINDOW
        return max(recorded, sum(hit > oldest_counted for hit in hits)) >= self._limit
