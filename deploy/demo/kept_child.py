"""A child process without which the others go on: where it ends, it is started again."""

import time
from collections.abc import Callable

from deploy.demo.children import Child

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
STEADY_SECONDS = 60.0
"""A child that has run for so long is started again after the first pause."""


class KeptChild:
    """Starts a child again after pauses that double; `now` returns seconds that never go back."""

    def __init__(self, child: Child, now: Callable[[], float] = time.monotonic) -> None:
        self.child = child
        self._now = now
        self._started_at = 0.0
        self._pause_seconds = 0.0
        self._again_at: float | None = None

    def start(self) -> None:
        """Start it; in the main thread, as every child."""
        self._started_at = self._now()
        self._again_at = None
        self.child.start()

    def look(self) -> None:
        """Start it again where it has ended and its pause is over."""
        if self.child.exit_code is None:
            return
        now = self._now()
        if self._again_at is None:
            was_steady = now - self._started_at >= STEADY_SECONDS
            doubled = FIRST_PAUSE_SECONDS if was_steady else max(FIRST_PAUSE_SECONDS, 2 * self._pause_seconds)
            self._pause_seconds = min(doubled, LONGEST_PAUSE_SECONDS)
            self._again_at = now + self._pause_seconds
        elif now >= self._again_at:
            self.start()
