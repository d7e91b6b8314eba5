"""Wake-up signals for tasks that wait for a change."""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager


class Wakeups:
    """Wakes all tasks that wait at the moment of a change; a later one waits for the next change.

    A task looks first, and waits without a pause between, so that it misses no change. Readers of events wait
    once for each delta: a future and a timer of its own take a third of the time of an event within `asyncio.timeout`.
    """

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[bool]] = set()

    def note(self) -> None:
        """Wake all that wait."""
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            _settle(future, came=True)

    async def noted(self) -> None:
        """Wait for the next change."""
        await self._awaited(asyncio.get_running_loop().create_future())

    async def noted_within(self, seconds: float) -> bool:
        """Wait for the next change; return whether it came in time."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(seconds, lambda: _settle(future, came=False))
        try:
            return await self._awaited(future)
        finally:
            timer.cancel()

    async def _awaited(self, future: asyncio.Future[bool]) -> bool:
        self._waiting.add(future)
        try:
            return await future
        finally:
            self._waiting.discard(future)


class NamedWakeups:
    """Wakes those that wait for one of several names."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Future[str]]] = {}

    @property
    def names(self) -> list[str]:
        """The names that are waited for."""
        return list(self._waiting)

    @contextmanager
    def waiting(self, names: Sequence[str]) -> Generator[asyncio.Future[str]]:
        """Lend what gets the first of these names that is woken while the block runs."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        for name in names:
            self._waiting.setdefault(name, set()).add(future)
        try:
            yield future
        finally:
            for name in names:
                self._waiting[name].discard(future)
                if not self._waiting[name]:
                    del self._waiting[name]

    def wake(self, name: str) -> None:
        """Wake all that wait for a name."""
        for future in self._waiting.get(name, ()):
            if not future.done():
                future.set_result(name)


def _settle(future: asyncio.Future[bool], *, came: bool) -> None:
    if not future.done():
        future.set_result(came)
