"""Running work whose failure ends nothing but itself: all that runs in the background of a process."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from backend.foundation.ports.readiness import FailureObserver
from shared.errors import Unavailable

Result = TypeVar("Result")
Step = Callable[[], Awaitable[object]]

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 5.0
"""The pause after a failure doubles up to this, or up to the pause after a success where that is longer."""

LONGEST_PAUSE_OF_RARE_WORK_SECONDS = 60.0


class Supervisor:
    """The only way to run work in the background: a failure is reported, and the work goes on after a pause.

    `jitter` returns numbers from 0 to 1, by which replicas that fail together do not try again together.
    """

    def __init__(
        self,
        observer: FailureObserver,
        jitter: Callable[[], float],
        first_pause_seconds: float = FIRST_PAUSE_SECONDS,
    ) -> None:
        self._observer = observer
        self._jitter = jitter
        self._first_pause_seconds = first_pause_seconds

    async def repeat_forever(self, task: str, step: Step, seconds_between: float) -> None:
        """Run `step` at once and then again and again until cancelled, whatever it raises."""
        failures = 0
        while True:
            failures = 0 if await self.attempt(task, step) else failures + 1
            await asyncio.sleep(self.pause_seconds(failures, seconds_between) if failures else seconds_between)

    async def until_done(self, task: str, step: Step, unless: asyncio.Event | None = None) -> None:
        """Run `step` until it succeeds, whatever it raises; once `unless` is set it is cancelled and not repeated."""
        given_up = unless or asyncio.Event()
        failures = 0
        while isinstance(error := await result_or_error(_run_unless(given_up, step)), BaseException):
            self._observer.background_failed(task, error)
            failures += 1
            if await is_set_within(given_up, self.pause_seconds(failures, 0.0)):
                return

    async def through_outages(self, task: str, step: Step, unless: asyncio.Event) -> None:
        """Run `step` until it succeeds; an outage is waited for, unless `unless` is set, and all else is raised.

        A step that has begun is not cancelled.
        """
        failures = 0
        while isinstance(error := await result_or_error(_run(step)), BaseException):
            if not isinstance(error, Unavailable):
                raise error
            self._observer.background_failed(task, error)
            failures += 1
            if await is_set_within(unless, self.pause_seconds(failures, 0.0)):
                return

    async def attempt(self, task: str, step: Step) -> bool:
        """Run `step` once and return whether it succeeded; cancelling the caller cancels it."""
        error = await result_or_error(_run(step))
        if error is not None:
            self._observer.background_failed(task, error)
        return error is None

    def report(self, task: str, error: BaseException) -> None:
        """Report a failure that was handled."""
        self._observer.background_failed(task, error)

    def start(self, task: str, step: Step, seconds_between: float = 0.0) -> asyncio.Task[None]:
        """Do as `repeat_forever` in a task of its own; `step` may be work that does not end by itself."""
        return asyncio.create_task(self.repeat_forever(task, step, seconds_between), name=task)

    def pause_seconds(self, failures: int, seconds_between: float) -> float:
        """Return the pause after so many failures in a row of work that else pauses for `seconds_between`."""
        longest = max(LONGEST_PAUSE_SECONDS, min(seconds_between, LONGEST_PAUSE_OF_RARE_WORK_SECONDS))
        doubled = self._first_pause_seconds * 2.0 ** min(failures - 1, 16)
        return min(doubled, longest) * (1 + self._jitter()) / 2


async def stop_task(task: asyncio.Task[object] | None) -> None:
    """Cancel a task and wait for its end; None has ended already."""
    if task is not None:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def beside(work: Coroutine[object, None, Result]) -> AsyncGenerator[asyncio.Task[Result]]:
    """Run work beside the block of this context, which ends it: its task is cancelled and awaited."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        await stop_task(task)
        if not task.cancelled():
            task.exception()  # asyncio would report an exception that nobody has asked for


async def result_or_error(work: Awaitable[Result]) -> Result | BaseException:
    """Run work to its end in a task of its own; return its result, or the exception that it raised.

    When the caller is cancelled, the work is cancelled too and awaited before the cancellation goes on. A
    cancellation that nobody asked for, such as that of a connection pool which is torn down, is returned; libraries
    that cancel the task they run in, and do not take that back, cancel nothing of the caller's.
    """
    task = asyncio.ensure_future(work)
    try:
        await _wait_for_end(task)
    except asyncio.CancelledError:
        task.cancel()
        await _wait_for_end(task)
        raise
    if task.cancelled():
        return asyncio.CancelledError()
    error = task.exception()
    return task.result() if error is None else error


async def _wait_for_end(task: asyncio.Future[Any]) -> None:
    """Do as `asyncio.wait` does with one task, for a third of its time: almost all work of a service passes here."""
    if not task.done():
        ended = asyncio.get_running_loop().create_future()
        task.add_done_callback(partial(_tell_end, ended))
        await ended


def _tell_end(ended: asyncio.Future[None], _task: object) -> None:
    if not ended.done():
        ended.set_result(None)


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event; return whether it came in time."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return event.is_set()


async def _run_unless(event: asyncio.Event, step: Step) -> None:
    """Run a step to its end, or cancel it once the event is set."""
    work, waiting = asyncio.create_task(_run(step)), asyncio.create_task(_run(event.wait))
    try:
        await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await stop_task(waiting)
        await stop_task(work)
    if not (event.is_set() and work.cancelled()):
        work.result()


async def _run(step: Step) -> None:
    await step()
