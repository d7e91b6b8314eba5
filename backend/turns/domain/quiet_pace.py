"""How long the streams of restricted turns take: as long as those before them, and not as what is said in one."""

from collections import deque
from math import ceil, log2

_REMEMBERED = 32
_SHARED = 2
"""Doublings that the streams before may cost one: whoever asks for a very long answer slows nobody further."""


class QuietPace:
    """Rounds how long a stream takes up to the shortest time, or to a power of two times that.

    What a busy machine does to all streams would else happen to the longer answers first, and tell these by it. So a
    stream takes no less than the longest of those before it.
    """

    def __init__(self, shortest_seconds: float) -> None:
        self.shortest_seconds = shortest_seconds
        self._doublings: deque[int] = deque([0], _REMEMBERED)

    def round_up(self, needed: int, shortest: int) -> int:
        """Return how many steps a stream takes that needs so many, where the shortest time has `shortest`."""
        doublings = max(0, ceil(log2(needed / shortest)))
        before = min(max(self._doublings), _SHARED)
        self._doublings.append(doublings)
        return shortest * 2 ** max(doublings, before)
