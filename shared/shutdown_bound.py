"""A bound on the shutdown of a process: what hangs is named, and the process ends all the same.

An orchestrator would kill it later anyway, and would not say what hung. What was acknowledged is stored by then.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple, cast

from shared.loop_watchdog import frames_of_thread

CLOSING_SECONDS = 30.0
"""How long a process may take to end once no turn runs: the slowest reader has ten seconds, a statement some more."""

EXIT_CODE = 1


class StillRunning(NamedTuple):
    """The tasks and threads of a process, each as its name and where it is: no values, so no text of users."""

    tasks: list[str]
    threads: list[str]


class ShutdownBound:
    """Ends the process with `EXIT_CODE` where its shutdown takes too long, after `on_late` was told what still runs.

    Its timer is a thread, for the event loop may be what hangs, and is never stopped: it covers the end of the
    interpreter, too, which waits for threads.
    """

    def __init__(self, on_late: Callable[[StillRunning], None]) -> None:
        self._on_late = on_late
        self._timer: threading.Timer | None = None

    def begin(self, seconds: float) -> None:
        """Allow so many seconds from now on, in place of what was allowed before; call it in the event loop."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(seconds, self._end, (asyncio.get_running_loop(),))
        self._timer.name, self._timer.daemon = "shutdown-bound", True
        self._timer.start()

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            self._on_late(still_running(loop))
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(EXIT_CODE)


def still_running(loop: asyncio.AbstractEventLoop) -> StillRunning:
    """Return what runs in a loop, and the other threads of the process; call it in any thread."""
    frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    threads = [each for each in threading.enumerate() if each is not threading.current_thread()]
    return StillRunning(
        [f"{task.get_name()} at {_place_of(task)}" for task in asyncio.all_tasks(loop)],
        [f"{each.name} at {' < '.join(frames_of_thread(frames.get(each.ident or 0))[:4])}" for each in threads],
    )


def _place_of(task: asyncio.Task[object]) -> str:
    """Return the innermost coroutine that a task waits in."""
    innermost: object = task.get_coro()
    while (waiting := cast(object, getattr(innermost, "cr_await", None))) is not None and hasattr(waiting, "cr_frame"):
        innermost = waiting
    frame = cast(FrameType | None, getattr(innermost, "cr_frame", None))
    return f"{getattr(innermost, '__qualname__', '?')}:{frame.f_lineno if frame is not None else '?'}"
