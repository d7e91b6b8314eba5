"""A thread that measures how long the event loop lets its callbacks wait, and sees where it is held."""

import asyncio
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import NamedTuple, Self

PERIOD_SECONDS = 0.05
HELD_SECONDS = 0.1
"""From here on a lag is reported with the place at which the loop was held."""

REMEMBERED_SECONDS = 15.0
MAX_FRAMES = 12


class Held(NamedTuple):
    """A long lag, and the time that the loop's thread spent computing in it: the rest, others had the processor.

    `places` are the innermost frames of that thread as module, function and line: no values, so no text of users.
    """

    lag_seconds: float
    cpu_seconds: float
    places: list[str]


OnHeld = Callable[[Held], None]


class LatestLags:
    """The lags of the last 15 seconds, but for those that an equal or longer one follows: they are never the longest.

    One thread adds lags, others may ask for the longest.
    """

    def __init__(self) -> None:
        self._lags: deque[tuple[float, float]] = deque()

    def __len__(self) -> int:
        """Return how many are remembered."""
        return len(self._lags)

    def add(self, now: float, lag: float) -> None:
        """Add one that ends now."""
        while self._lags and self._lags[-1][1] <= lag:
            self._lags.pop()
        while self._lags and self._lags[0][0] < now - REMEMBERED_SECONDS:
            self._lags.popleft()
        self._lags.append((now, lag))

    def longest(self, now: float) -> float:
        """Return the longest that is not too old."""
        return max((lag for seen_at, lag in tuple(self._lags) if seen_at >= now - REMEMBERED_SECONDS), default=0.0)


class LoopWatchdog:
    """Asks the running loop for a sign of life, 20 times a second; use it as `with`, inside the loop.

    `on_held` is called in the watchdog's thread with what is known of a long lag. A call that holds the interpreter's
    lock stops this thread, too: the places are then those that follow the call.
    """

    def __init__(
        self, on_held: OnHeld, held_seconds: float = HELD_SECONDS, period_seconds: float = PERIOD_SECONDS
    ) -> None:
        self._on_held = on_held
        self._held_seconds = held_seconds
        self._period_seconds = period_seconds
        self._lags = LatestLags()
        self._answered = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start watching the running loop."""
        loop, watched = asyncio.get_running_loop(), threading.get_ident()
        self._thread = threading.Thread(target=self._watch, args=(loop, watched), name="loop-watchdog", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop watching."""
        self._stopped.set()
        self._answered.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def lag_seconds(self) -> float:
        """The longest lag of the last 15 seconds."""
        return self._lags.longest(time.monotonic())

    def _watch(self, loop: asyncio.AbstractEventLoop, watched: int) -> None:
        while not self._stopped.wait(self._period_seconds):
            try:
                self._measure(loop, watched)
            except RuntimeError:
                return  # the loop is closed

    def _measure(self, loop: asyncio.AbstractEventLoop, watched: int) -> None:
        self._answered.clear()
        if self._stopped.is_set():
            return  # the loop's thread waits for this one and answers no more; its last sign may have been cleared
        asked_at, computed_at = time.monotonic(), _cpu_seconds(watched)
        loop.call_soon_threadsafe(self._answered.set)
        places: list[str] = []
        if not self._answered.wait(self._held_seconds):
            places = frames_of_thread(sys._current_frames().get(watched))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            self._answered.wait()
        now = time.monotonic()
        lag = now - asked_at
        self._lags.add(now, lag)
        if lag >= self._held_seconds and not self._stopped.is_set():
            self._on_held(Held(lag, _cpu_seconds(watched) - computed_at, places))


def _cpu_seconds(thread: int) -> float:
    """Return how long a thread has computed; 0 on systems that do not say it."""
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    return time.clock_gettime(clock_of(thread)) if clock_of is not None else 0.0


def frames_of_thread(frame: FrameType | None) -> list[str]:
    """Return the innermost places of a thread as module, function and line: no values, so no text of users."""
    places: list[str] = []
    while frame is not None and len(places) < MAX_FRAMES:
        module = frame.f_globals.get("__name__", "?")
        places.append(f"{module}.{frame.f_code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
    return places
