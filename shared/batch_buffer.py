"""A bounded buffer between two tasks, which the reader empties in one step."""

import asyncio
from collections.abc import Iterable
from typing import Generic, TypeVar

Element = TypeVar("Element")


class BatchBuffer(Generic[Element]):
    """Passes elements from one task to another in batches; a slow reader gets fewer and larger batches."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: list[Element] = []
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()
        self._is_closed = False

    async def put(self, elements: Iterable[Element], *, wakes: bool = True) -> None:
        """Wait until the buffer has fewer than `capacity` elements, then add all; a cancelled wait adds them too.

        A reader takes elements that do not wake it once it is woken: by others, by a full buffer, by `wake`.
        """
        try:
            while len(self._waiting) >= self._capacity:
                self._filled.set()
                self._emptied.clear()
                await self._emptied.wait()
        finally:
            self._waiting.extend(elements)
            if wakes:
                self._filled.set()

    def wake(self) -> None:
        """Let the reader take what is there."""
        self._filled.set()

    def close(self, last: Iterable[Element] = ()) -> None:
        """Add the last elements without waiting for space, and end the stream; no elements follow them."""
        self._waiting.extend(last)
        self._is_closed = True
        self._filled.set()

    async def take(self) -> list[Element]:
        """Wait to be woken for an element and return all in the buffer; an empty batch is the end of the stream.

        A cancelled call loses no elements.
        """
        while not (self._is_closed or (self._waiting and self._filled.is_set())):
            self._filled.clear()
            await self._filled.wait()
        taken, self._waiting = self._waiting, []
        self._filled.clear()
        self._emptied.set()
        return taken
