"""The speed at which this process embeds chunks, and an estimate of the time that remains."""

from collections import deque
from math import ceil

BATCHES = 16
"""Over how many of the last batches the pace is measured: some minutes of a slow model."""


class EmbeddingPace:
    """The pace of the last batches."""

    def __init__(self) -> None:
        self._batches = deque[tuple[int, float]](maxlen=BATCHES)

    def note(self, chunks: int, seconds: float) -> None:
        """Note a batch: how many chunks it gave vectors, and how long it took."""
        self._batches.append((chunks, seconds))

    def seconds_for(self, chunks: int) -> int | None:
        """Return how long so many chunks take, rounded up; None before anything was measured."""
        if not chunks:
            return 0
        made = sum(count for count, _ in self._batches)
        return max(ceil(chunks * sum(seconds for _, seconds in self._batches) / made), 1) if made else None
