"""The usual time of a summary, and the wait that makes a search without one take as long.

A search that found nothing ends long before a summary could be written, so its time alone would tell that a base has
nothing on a question.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence

KEPT_TIMES = 64
"""The newest summaries of this process whose times are kept."""

FIRST_SECONDS = 3.0
"""The usual time as long as no summary has been made: about what a model needs for so short a text."""


class LatencyPadding:
    """The times of the latest summaries.

    A wait ends at one of these times, drawn by `choose`, and not at their mean: then waits are spread as the times are.
    `sleep` waits for a number of seconds.
    """

    def __init__(self, sleep: Callable[[float], Awaitable[None]], choose: Callable[[Sequence[float]], float]):
        self._sleep = sleep
        self._choose = choose
        self._latest: deque[float] = deque(maxlen=KEPT_TIMES)

    def record(self, seconds: float) -> None:
        """Remember how long a search with a summary took, released or not."""
        self._latest.append(seconds)

    async def pad(self, passed_seconds: float, most_seconds: float) -> None:
        """Wait until a search that has taken `passed_seconds` has taken as long as a summary, or `most_seconds`."""
        usual = self._choose(tuple(self._latest)) if self._latest else FIRST_SECONDS
        await self._sleep(max(0.0, min(usual, most_seconds) - passed_seconds))
