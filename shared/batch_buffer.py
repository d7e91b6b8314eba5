"""A bounded buffer that is emptied in one go."""

import asyncio
from collections.abc import Iterable
from typing import Generic, TypeVar

Element = TypeVar("Element")


class BatchBuffer(Generic[Element]):
    """Passes elements from one task to another in batches: a slow reader gets fewer and larger ones."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: list[Element] = []
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()
        self._is_closed = False

    async def put(self, elements: Iterable[Element]) -> None:
        """Add elements as soon as the buffer is not full; they are added even when the wait is cancelled."""
        try:
            while len(self._waiting) >= self._capacity:
                self._emptied.clear()
                await self._emptied.wait()
        finally:
            self._waiting.extend(elements)
            self._filled.set()

    def close(self, last: Iterable[Element] = ()) -> None:
        """Add the last elements, for which there is always room; nothing follows them."""
        self._waiting.extend(last)
        self._is_closed = True
        self._filled.set()

    async def take(self) -> list[Element]:
        """Return everything in the buffer, waiting for the first element; the end is an empty batch.

        Cancelling it loses nothing.
        """
        while not self._waiting and not self._is_closed:
            self._filled.clear()
            await self._filled.wait()
        taken, self._waiting = self._waiting, []
        self._emptied.set()
        return taken
