"""The time limits of one model call: the idle timeout between frames, and the turn's deadline."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from shared.errors import DeadlineExceeded, ModelStalled

T = TypeVar("T")


class ProviderTimeouts:
    """Limits each wait for a provider by an idle timeout, which `renew` restarts, and by one deadline.

    The time that a consumer takes between two waits must not count against the provider: renew after it.
    """

    def __init__(self, idle_seconds: float, remaining_seconds: float) -> None:
        self._now = asyncio.get_running_loop().time
        self._idle_seconds = idle_seconds
        self._idle_until = self._now() + idle_seconds
        self._deadline = self._now() + remaining_seconds

    def renew(self, at_most_seconds: float | None = None) -> None:
        """Restart the idle timeout, shortened to `at_most_seconds` where given."""
        idle_seconds = self._idle_seconds if at_most_seconds is None else min(at_most_seconds, self._idle_seconds)
        self._idle_until = self._now() + idle_seconds

    def check(self) -> None:
        """Raise DeadlineExceeded when the deadline has passed."""
        if self._now() >= self._deadline:
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
            # Decided by which limit was the nearer one, not by the clock: uvloop's timers may fire a little early.
            if self._deadline <= self._idle_until:
                raise DeadlineExceeded("the turn's time is over") from None
            raise ModelStalled(f"the model's provider sent nothing for {self._idle_seconds:g} seconds") from None
