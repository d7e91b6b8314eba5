"""Rounds in which a process does for all its streams what may wait, so that it wakes up once for many of them."""

import asyncio
from collections.abc import Callable
from typing import Protocol

ROUND_SECONDS = 0.015
"""The shortest time between two rounds, and the longest that anything waits; timers may be some milliseconds late."""


class Timer(Protocol):
    """The part of an event loop that rounds need."""

    def time(self) -> float:
        """Return the seconds of a clock that only goes forward."""
        ...

    def call_at(self, when: float, callback: Callable[[], None], /) -> object:
        """Call a function at a time of that clock."""
        ...


class WakeupBatcher:
    """Calls functions at once when no round has begun for `seconds`, else in the next round, together with all others.

    A process in which little happens therefore waits for nothing. The default timer is the running event loop.
    """

    def __init__(self, seconds: float = ROUND_SECONDS, timer: Timer | None = None) -> None:
        self._seconds = seconds
        self._timer = timer
        self._next_at = float("-inf")
        self._waiting: dict[Callable[[], None], None] = {}

    def join(self, act: Callable[[], None]) -> None:
        """Call `act` now or in the next round; a function that waits for the round already is called once."""
        if not self._waiting:
            timer = self._timer or asyncio.get_running_loop()
            now = timer.time()
            if now >= self._next_at:
                self._next_at = now + self._seconds
                act()
                return
            timer.call_at(self._next_at, self._begin)
        self._waiting[act] = None

    def _begin(self) -> None:
        timer = self._timer or asyncio.get_running_loop()
        self._next_at = timer.time() + self._seconds
        waiting, self._waiting = self._waiting, {}
        for act in waiting:
            act()
