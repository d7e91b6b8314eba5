"""Processes in virtual time: each has an event loop of its own, and a seed decides which of them runs next.

Within a process callbacks run in the order in which asyncio promises to run them; between processes any order may come,
as between real ones. Time stands while anything can run, and jumps to the next timer then.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from datetime import timedelta
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from tests.fakes.clock import FakeClock

MOST_TURNS_AT_ONCE = 200_000
"""So often may processes run without that time moves: more is a loop without an end."""

ROUNDS_TO_CLOSE = 100


class SimulatedTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address."""

    def __init__(self, place: int, *args: Any, **options: Any) -> None:
        self._place = place
        super().__init__(*args, **options)

    def __hash__(self) -> int:
        return self._place


def _nothing() -> None:
    """Stand for a callback that was cancelled, of which nothing is kept."""


class Callback:
    """Implements what is used of asyncio's handles, at half of their costs."""

    __slots__ = ("args", "context", "due_at", "function", "is_cancelled")

    def __init__(self, function: Any, args: Any, context: Context | None, when: float) -> None:
        self.function = function
        self.args = args
        self.context = copy_context() if context is None else context
        self.is_cancelled = False
        self.due_at = when

    def cancel(self) -> None:
        """Never call it."""
        self.is_cancelled = True
        self.function, self.args = _nothing, ()

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self.due_at


class MemberLoop(asyncio.AbstractEventLoop):
    """The event loop of one process: `freeze` is SIGSTOP, `kill` is SIGKILL.

    A `server` is none of the product's processes: what it calls asks for no running loop.
    """

    def __init__(self, world: "World", name: str, *, is_server: bool = False) -> None:
        self.name = name
        self.ready: deque[Callback] = deque()
        self.is_frozen = False
        self.is_dead = False
        self.is_server = is_server
        self.is_awake = False
        self.defects: list[str] = []
        self._world = world
        world.loops.append(self)

    def freeze(self) -> None:
        """Run nothing until `thaw`; what becomes due meanwhile is due at once then."""
        self.is_frozen = True

    def thaw(self) -> None:
        """Go on."""
        self.is_frozen = False
        if self.ready:
            self._world.wake(self)

    def kill(self) -> None:
        """Never run anything again. Its tasks are kept: their `finally` blocks must not run either."""
        self.is_dead = True
        self._world.loops.remove(self)
        self._world.killed.append(self)

    def run_once(self) -> None:
        """Run what is ready now."""
        ready = self.ready
        for _ in range(len(ready)):
            callback = ready.popleft()
            if callback.is_cancelled:
                continue
            try:
                callback.context.run(callback.function, *callback.args)
            except Exception as error:  # noqa: BLE001 -- no callback of the product raises
                self.defects.append(f"{self.name}: {error!r}")

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a task from outside of this process; what it raises is a defect."""
        task = self.create_task(work)
        task.add_done_callback(self._note_defect)
        return task

    def _note_defect(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.defects.append(f"{self.name}: {error!r}")

    def time(self) -> float:
        return self._world.now

    get_debug: Any = staticmethod(bool)  # False, without a call of Python for each future

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:
        called = Callback(callback, args, context, 0.0)
        self.ready.append(called)
        if not (self.is_awake or self.is_frozen):
            self.is_awake = True
            self._world.awake.append(self)
        return called

    call_soon_threadsafe = call_soon

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> Any:
        world = self._world
        called = Callback(callback, args, context, world.now + delay)
        heappush(world.timers, (called.due_at, next(world.places), called, self))
        return called

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> Any:
        world = self._world
        called = Callback(callback, args, context, when)
        heappush(world.timers, (when, next(world.places), called, self))
        return called

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        return SimulatedTask(self._world.count_task(), coro, loop=self, **options)

    def get_task_factory(self) -> None:
        return None

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Run it here and now: threads have no order that a seed could decide."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 -- whoever awaits it gets it
            future.set_exception(error)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note a defect that no task has raised to anybody."""
        self.defects.append(f"{context.get('message')}: {context.get('exception')!r}")


class World:
    """Time, chance and history of one simulation; `awake` are the processes that can run."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.now = 0.0
        self.loops: list[MemberLoop] = []
        self.killed: list[MemberLoop] = []
        self.awake: list[MemberLoop] = []
        self.history: list[str] = []
        self._running: MemberLoop | None = None
        self.timers: list[tuple[float, int, Callback, MemberLoop]] = []
        self.places = count()
        self._tasks = count()

    def note(self, told: str) -> None:
        """Write a line of history."""
        self.history.append(f"{self.now:10.4f} {told}")

    def count_task(self) -> int:
        """Return the number of a new task."""
        return next(self._tasks)

    def run_until(self, end: float) -> None:
        """Let all processes run until a time.

        Raises:
            RuntimeError: they run without that time moves.
        """
        turns = 0
        try:
            while True:
                while self.awake:
                    self._run_one()
                    turns += 1
                    if turns > MOST_TURNS_AT_ONCE:
                        raise RuntimeError(f"Time stands at {self.now}: {[loop.name for loop in self.awake]}")
                turns = 0
                if not self.timers or self.timers[0][0] > end:
                    self.now = end
                    return
                self._ready_what_is_due()
        finally:
            asyncio._set_running_loop(None)
            self._running = None

    def wake(self, loop: MemberLoop) -> None:
        """Note that a process can run."""
        if not (loop.is_awake or loop.is_frozen):
            loop.is_awake = True
            self.awake.append(loop)

    def _run_one(self) -> None:
        awake = self.awake
        place = int(self.dice.random() * len(awake)) if len(awake) > 1 else 0
        loop = awake.pop(place)
        loop.is_awake = False
        if loop.is_frozen or loop.is_dead:
            return
        if loop is not self._running and not loop.is_server:
            asyncio._set_running_loop(loop)
            self._running = loop
        loop.run_once()
        if loop.ready:
            self.wake(loop)

    def _ready_what_is_due(self) -> None:
        timers = self.timers
        self.now = max(self.now, timers[0][0])
        while timers and timers[0][0] <= self.now:
            _, _, called, loop = heappop(timers)
            if called.is_cancelled or loop.is_dead:
                continue
            loop.ready.append(called)
            if not loop.is_awake:
                self.wake(loop)

    def close(self) -> None:
        """Cancel all that still runs or was killed, so that nothing is left for the collector of cycles."""
        loops = [*self.loops, *self.killed]
        try:
            for _ in range(ROUNDS_TO_CLOSE):
                left = [task for loop in loops for task in asyncio.all_tasks(loop)]
                if not left:
                    return
                for task in left:
                    task.cancel()
                for loop in loops:
                    asyncio._set_running_loop(loop)
                    for _ in range(3):
                        loop.run_once()
        finally:
            asyncio._set_running_loop(None)

    def between(self, least: float, most: float) -> float:
        """Draw a number."""
        return least + (most - least) * self.dice.random()


class WorldClock(FakeClock):
    """The wall clock of all processes."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def now(self) -> Any:
        """Return the instant."""
        return self._now + timedelta(seconds=self._world.now)
