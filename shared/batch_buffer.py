"""A bounded buffer between two tasks, which the reader empties in one step."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

Element = TypeVar("Element")


class BatchBuffer(Generic[Element]):
    """Passes elements from one task to another in batches; a slow reader gets fewer and larger batches."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: list[Element] = []
        self._reader: asyncio.Future[None] | None = None
        self._emptied = asyncio.Event()
        self._is_closed = False

    @property
    def is_overfull(self) -> bool:
        """Whether more than `capacity` elements wait: who adds some waits for `room` before adding others."""
        return len(self._waiting) > self._capacity

    def add(self, elements: Iterable[Element]) -> None:
        """Add elements without waiting for room."""
        self._waiting.extend(elements)
        self.wake()

    async def room(self) -> None:
        """Wait until no more than `capacity` elements wait."""
        while self.is_overfull:
            self._emptied.clear()
            await self._emptied.wait()

    def wake(self) -> None:
        """Let the reader take what is there."""
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def close(self, last: Iterable[Element] = ()) -> None:
        """Add the last elements without waiting for space, and end the stream; no elements follow them."""
        self._waiting.extend(last)
        self._is_closed = True
        self.wake()

    async def take(self) -> Sequence[Element]:
        """Wait for an element and return all in the buffer; an empty batch is the end of the stream.

        A cancelled call loses no elements.
        """
        while not (self._is_closed or self._waiting):
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return self.take_ready()

    def take_ready(self) -> Sequence[Element]:
        """Return all in the buffer without waiting."""
        taken, self._waiting = self._waiting, []
        self._emptied.set()
        return self._hand_out(taken)

    def _hand_out(self, taken: list[Element]) -> Sequence[Element]:
        """Return what a reader gets of elements that it takes."""
        return taken
