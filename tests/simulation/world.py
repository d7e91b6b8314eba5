"""Processes in virtual time: each has an event loop of its own, and a seed decides which of them runs next.

Within a process callbacks run in the order in which asyncio promises to run them; between processes any order may come,
as between real ones. Time stands while anything can run, and jumps to the next timer then.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
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


class ProcessLoop(asyncio.AbstractEventLoop):
    """The event loop of one process: `freeze` is SIGSTOP, `kill` is SIGKILL."""

    def __init__(self, world: "World", name: str) -> None:
        self.name = name
        self.ready: deque[asyncio.Handle] = deque()
        self.is_frozen = False
        self.is_dead = False
        self.defects: list[str] = []
        self._world = world
        world.loops.append(self)

    def freeze(self) -> None:
        """Run nothing until `thaw`; what becomes due meanwhile is due at once then."""
        self.is_frozen = True

    def thaw(self) -> None:
        """Go on."""
        self.is_frozen = False

    def kill(self) -> None:
        """Never run anything again. Its tasks are kept: their `finally` blocks must not run either."""
        self.is_dead = True
        self._world.loops.remove(self)
        self._world.killed.append(self)

    def run_once(self) -> None:
        """Run what is ready now."""
        asyncio._set_running_loop(self)
        try:
            for _ in range(len(self.ready)):
                handle = self.ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            asyncio._set_running_loop(None)

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

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._world.now + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._world.schedule(when, handle, self)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It stays in the queue until it is due."""

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
    """Time, chance and history of one simulation."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.now = 0.0
        self.loops: list[ProcessLoop] = []
        self.killed: list[ProcessLoop] = []
        self.history: list[str] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle, ProcessLoop]] = []
        self._places = count()
        self._tasks = count()

    def note(self, told: str) -> None:
        """Write a line of history."""
        self.history.append(f"{self.now:10.4f} {told}")

    def schedule(self, when: float, handle: asyncio.TimerHandle, loop: ProcessLoop) -> None:
        """Make a callback ready at a time."""
        heappush(self._timers, (when, next(self._places), handle, loop))

    def count_task(self) -> int:
        """Return the number of a new task."""
        return next(self._tasks)

    def run_until(self, end: float) -> None:
        """Let all processes run until a time.

        Raises:
            RuntimeError: they run without that time moves.
        """
        turns = 0
        while True:
            runnable = [loop for loop in self.loops if loop.ready and not loop.is_frozen]
            if runnable:
                place = int(self.dice.random() * len(runnable)) if len(runnable) > 1 else 0
                runnable[place].run_once()
                turns += 1
                if turns > MOST_TURNS_AT_ONCE:
                    raise RuntimeError(f"Time stands at {self.now}: {[loop.name for loop in runnable]}")
                continue
            turns = 0
            if not self._timers or self._timers[0][0] > end:
                self.now = end
                return
            self.now = max(self.now, self._timers[0][0])
            self._ready_what_is_due()

    def _ready_what_is_due(self) -> None:
        while self._timers and self._timers[0][0] <= self.now:
            _, _, handle, loop = heappop(self._timers)
            if not (handle.cancelled() or loop.is_dead):
                loop.ready.append(handle)

    def close(self) -> None:
        """Cancel all that still runs or was killed, so that nothing is left for the collector of cycles."""
        loops = [*self.loops, *self.killed]
        for _ in range(ROUNDS_TO_CLOSE):
            left = [task for loop in loops for task in asyncio.all_tasks(loop)]
            if not left:
                return
            for task in left:
                task.cancel()
            for loop in loops:
                for _ in range(3):
                    loop.run_once()

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
