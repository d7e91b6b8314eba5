"""How fast the answer of one model call is read: what comes faster waits at the provider, so that other turns run."""

import asyncio
from collections.abc import Awaitable, Generator
from math import inf
from typing import Any

READ_BYTES = 65_536
"""Decoded in one step, in a millisecond or two: all other turns of the process wait so long."""

FRAMES_A_SECOND = 10_000
"""Some times as many as the fastest model sends."""

AHEAD_SECONDS = 0.1
"""What has waited comes at once: so many seconds' frames."""


class _NoPause:
    """Ends at once: each delta awaits one, which takes less than a coroutine."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


_NO_PAUSE = _NoPause()


class ReadPace:
    """Bounds how fast the frames of one answer are read."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._frame_count = 0
        self._due = -inf

    def keep(self, frame_count: int) -> Awaitable[None]:
        """Return a pause where the answer, of which so many frames have come, comes faster than any model sends."""
        now = self._loop.time()
        further, self._frame_count = frame_count - self._frame_count, frame_count
        self._due = max(self._due, now - AHEAD_SECONDS) + further / FRAMES_A_SECOND
        return asyncio.sleep(self._due - now) if self._due > now else _NO_PAUSE
