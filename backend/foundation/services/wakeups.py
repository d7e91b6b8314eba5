"""Wake-up signals for tasks that wait for a change, and calls in place of such tasks."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from math import inf


class Wakeups:
    """Wakes all tasks that wait at the moment of a change; a later one waits for the next change.

    A task looks first, and awaits what it is given without a pause between, so that it misses no change. Readers of
    events wait once for each delta: all waits have one timer, which is set anew when it fires.
    """

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[bool], float] = {}
        self._fires_at = inf

    def note(self) -> None:
        """Wake all that wait."""
        waiting, self._waiting = self._waiting, {}
        for future in waiting:
            if not future.done():
                future.set_result(True)

    def wait(self) -> asyncio.Future[bool]:
        """Return what ends with the next change."""
        return self.wait_within(inf)

    def wait_within(self, seconds: float) -> asyncio.Future[bool]:
        """Return what ends with the next change, or after so many seconds, and tells whether a change came in time."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        self._waiting[future] = until = loop.time() + seconds
        if until < self._fires_at:
            self._fires_at = until
            loop.call_at(until, self._give_up, until)
        return future

    def _give_up(self, now: float) -> None:
        """End the waits that are over, and look again when the next one is."""
        if now > self._fires_at:
            return  # an earlier timer was set behind this one, and has looked
        late = [future for future, until in self._waiting.items() if until <= now]
        for future in late:
            del self._waiting[future]
            if not future.done():
                future.set_result(False)
        self._fires_at = min(self._waiting.values(), default=inf)
        if self._fires_at < inf:
            asyncio.get_running_loop().call_at(self._fires_at, self._give_up, self._fires_at)


class CallingEvent(asyncio.Event):
    """An event that calls functions whenever it is set: what follows from it needs no task that waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self._functions: list[Callable[[], object]] = []

    def set(self) -> None:
        """Set it, and call the functions."""
        super().set()
        for function in self._functions:
            function()

    @contextmanager
    def calling(self, function: Callable[[], object]) -> Generator[None]:
        """Call a function while the block runs, also at once where the event is set already."""
        self._functions.append(function)
        if self.is_set():
            function()
        try:
            yield
        finally:
            self._functions.remove(function)


class NamedWakeups:
    """Wakes those that wait for one of several names."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[asyncio.Future[str], None]] = {}  # woken in their order

    @property
    def names(self) -> list[str]:
        """The names that are waited for."""
        return list(self._waiting)

    @contextmanager
    def waiting(self, names: Sequence[str]) -> Generator[asyncio.Future[str]]:
        """Lend what gets the first of these names that is woken while the block runs."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        for name in names:
            self._waiting.setdefault(name, {})[future] = None
        try:
            yield future
        finally:
            for name in names:
                self._waiting[name].pop(future, None)
                if not self._waiting[name]:
                    del self._waiting[name]

    def wake(self, name: str) -> None:
        """Wake all that wait for a name."""
        for future in self._waiting.get(name, ()):
            if not future.done():
                future.set_result(name)
