"""A clock for tasks that wait side by side: it moves to the next end of a wait once every task waits or has ended."""

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Any

from tests.fakes.clock import FakeClock


class VirtualTime(FakeClock):
    """Stands while any of its tasks works, be it in a thread."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count()
        self._waiting: list[tuple[float, int, asyncio.Event]] = []
        self._began = self.now()

    @property
    def seconds(self) -> float:
        """How far it has moved."""
        return (self.now() - self._began) / timedelta(seconds=1)

    async def sleep(self, seconds: float) -> None:
        """Wait until it has moved so far."""
        end = asyncio.Event()
        heappush(self._waiting, (self.seconds + seconds, next(self._numbers), end))
        await end.wait()

    async def seconds_of(self, steps: Sequence[Coroutine[Any, Any, object]]) -> list[float]:
        """Run coroutines side by side; return for each how long it took."""
        start = self.seconds
        ends: dict[int, float] = {}

        async def timed(place: int, step: Coroutine[Any, Any, object]) -> None:
            await step
            ends[place] = self.seconds - start

        async with asyncio.TaskGroup() as group:
            for place, step in enumerate(steps):
                group.create_task(timed(place, step))
            while len(ends) < len(steps):
                if len(self._waiting) + len(ends) < len(steps):
                    await asyncio.sleep(0)
                    continue
                end, _, event = heappop(self._waiting)
                self.advance(end - self.seconds)
                event.set()
                await asyncio.sleep(0)
        return [ends[place] for place in range(len(steps))]
