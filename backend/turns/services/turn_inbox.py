"""The hand-over between the task that reads from chat_shell and the one that writes."""

import asyncio
from collections.abc import Sequence

from shared.models.events import ExecutionEvent

CAPACITY_EVENTS = 256
"""Beyond it the reader waits, and with it, through flow control, chat_shell and the provider."""


class TurnInbox:
    """A bounded queue that is emptied at one go, so that a slow write is followed by one larger one."""

    def __init__(self, capacity_events: int = CAPACITY_EVENTS) -> None:
        self._capacity = capacity_events
        self._waiting: list[ExecutionEvent] = []
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()
        self._is_closed = False

    async def put(self, events: Sequence[ExecutionEvent]) -> None:
        """Add events; wait while the inbox is full."""
        self._waiting.extend(events)
        self._filled.set()
        while len(self._waiting) >= self._capacity:
            self._emptied.clear()
            await self._emptied.wait()

    def close(self) -> None:
        """Say that nothing more comes."""
        self._is_closed = True
        self._filled.set()

    async def take(self) -> list[ExecutionEvent]:
        """Return all that is there, waiting for the first; empty at the end."""
        while not self._waiting and not self._is_closed:
            self._filled.clear()
            await self._filled.wait()
        events, self._waiting = self._waiting, []
        self._emptied.set()
        return events
