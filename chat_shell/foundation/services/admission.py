"""Decide whether this process accepts new turns, and count the running ones."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from shared.errors import Draining

RETRY_AFTER_SECONDS = 1.0
"""Short, because the next attempt of the caller usually reaches another replica."""


class Admission:
    """Admits turns until `close`, which cannot be undone; one instance serves the whole process."""

    def __init__(self) -> None:
        self._accepting = True
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def accepting(self) -> bool:
        """Whether new turns are accepted."""
        return self._accepting

    @property
    def running(self) -> int:
        """How many turns run now."""
        return self._running

    def close(self) -> None:
        """Refuse new turns from now on; running ones go on."""
        self._accepting = False

    @contextmanager
    def admit(self) -> Generator[None]:
        """Count a turn as running while the block runs.

        Raises:
            Draining: this process is shutting down. Retryable, on another replica.
        """
        if not self._accepting:
            raise Draining("The model runner is shutting down.", retry_after_seconds=RETRY_AFTER_SECONDS)
        self._running += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def wait_until_idle(self) -> None:
        """Wait until no turn runs; call `close` before, or new turns may start."""
        await self._idle.wait()
