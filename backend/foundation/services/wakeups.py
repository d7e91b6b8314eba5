"""Wake-up signals for tasks that wait for a change, and calls in place of such tasks."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager


class Wakeups:
    """Wakes all tasks that wait at the moment of a change; a later one waits for the next change.

    A task looks first, and awaits what it is given without a pause between, so that it misses no change. Readers of
    events wait once for each delta: a future and a timer take a third of the time of an event within `asyncio.timeout`.
    """

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[bool], asyncio.TimerHandle | None] = {}

    def note(self) -> None:
        """Wake all that wait."""
        waiting, self._waiting = self._waiting, {}
        for future, timer in waiting.items():
            if timer is not None:
                timer.cancel()
            if not future.done():
                future.set_result(True)

    def wait(self) -> asyncio.Future[bool]:
        """Return what ends with the next change."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[future] = None
        return future

    def wait_within(self, seconds: float) -> asyncio.Future[bool]:
        """Return what ends with the next change, or after so many seconds, and tells whether a change came in time."""
        future = self.wait()
        self._waiting[future] = asyncio.get_running_loop().call_later(seconds, self._give_up, future)
        return future

    def _give_up(self, future: asyncio.Future[bool]) -> None:
        del self._waiting[future]
        if not future.done():
            future.set_result(False)


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
