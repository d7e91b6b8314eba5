"""The time limits of one model call: the idle timeout between frames, and the turn's deadline."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from math import inf
from typing import TypeVar

from shared.errors import BallastError, DeadlineExceeded, ModelStalled

T = TypeVar("T")


class ProviderTimeouts:
    """Limits each wait for a provider by an idle timeout, which `renew` restarts, and by one deadline.

    The time that a consumer takes between two waits must not count against the provider: renew after it.
    """

    def __init__(self, idle_seconds: float, remaining_seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle_seconds = idle_seconds
        self._idle_until = self._loop.time() + idle_seconds
        self._deadline = self._loop.time() + remaining_seconds
        self._is_waiting = False
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = inf

    def renew(self, at_most_seconds: float | None = None) -> None:
        """Restart the idle timeout, shortened to `at_most_seconds` where given."""
        idle_seconds = self._idle_seconds if at_most_seconds is None else min(at_most_seconds, self._idle_seconds)
        self._idle_until = self._loop.time() + idle_seconds

    def check(self) -> None:
        """Raise DeadlineExceeded when the deadline has passed."""
        if self._loop.time() >= self._deadline:
            raise DeadlineExceeded("the turn's time is over")

    async def wait(self, awaitable: Awaitable[T]) -> T:
        """Await something that the provider has to do.

        Raises:
            DeadlineExceeded: the deadline passed.
            ModelStalled: the idle timeout passed.
        """
        scope = asyncio.timeout_at(min(self._deadline, self._idle_until))
        try:
            async with scope:
                return await awaitable
        except TimeoutError:
            if not scope.expired():
                raise
            raise self._excess() from None

    @contextmanager
    def watch(self, break_off: Callable[[BallastError], None]) -> Generator[None]:
        """While the block runs, call `break_off` with the error of a wait between `begin_wait` and `end_wait`.

        All waits have one timer, which is set anew when it fires: they come by the thousand, and few end late.
        """
        self._break_off = break_off
        try:
            yield
        finally:
            self._set_timer(inf)

    def begin_wait(self) -> None:
        """Begin to wait for the provider.

        Raises:
            DeadlineExceeded: the deadline has passed.
        """
        self.check()
        self._is_waiting = True
        limit = min(self._deadline, self._idle_until)
        if limit < self._fires_at:
            self._set_timer(limit)

    def end_wait(self) -> None:
        """Note that something has come."""
        self._is_waiting = False

    def _set_timer(self, fires_at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fires_at = fires_at
        self._timer = self._loop.call_at(fires_at, self._look) if fires_at < inf else None

    def _look(self) -> None:
        """Break off a wait that is over its limit; where it is not, look again at the limit, or at the next wait."""
        limit = min(self._deadline, self._idle_until)
        if self._is_waiting and limit <= self._fires_at:
            self._break_off(self._excess())
        else:
            self._set_timer(limit if self._is_waiting else inf)

    def _excess(self) -> BallastError:
        # Decided by which limit was the nearer one, not by the clock: uvloop's timers may fire a little early.
        if self._deadline <= self._idle_until:
            return DeadlineExceeded("the turn's time is over")
        return ModelStalled(f"the model's provider sent nothing for {self._idle_seconds:g} seconds")
