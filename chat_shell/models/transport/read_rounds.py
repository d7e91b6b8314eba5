"""Rounds in which a busy process reads the answers of all models, so that it wakes up once for many of them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import aiohttp

ROUND_SECONDS = 0.015
"""The time between two rounds, and the longest that anything waits; timers may be some milliseconds late."""

BUSY_READS = 8
"""So many reads in the time of a round make a process busy. Where less comes, all is read as it comes."""

QUIET_ROUNDS = 32
"""After so many rounds in a row with fewer reads it is not busy any more."""


class Timer(Protocol):
    """The part of an event loop that rounds need."""

    def time(self) -> float:
        """Return the seconds of a clock that only goes forward."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None], /) -> object:
        """Call a function after so many seconds."""
        ...


class ReadRounds:
    """Counts what is read, and holds rounds while that is much. The default timer is the running event loop.

    What is done for many answers one after another is done while it lies in the processor's caches.
    """

    def __init__(self, timer: Timer | None = None) -> None:
        self.are_held = False
        self._timer = timer
        self._waiting: dict[RoundedReader, None] = {}
        self._reads = self._quiet_rounds = 0
        self._counted_from = float("-inf")

    def join(self, reader: "RoundedReader") -> None:
        """Wake a reader in the first round that finds news of it, or with the last round."""
        self._waiting[reader] = None

    def leave(self, reader: "RoundedReader") -> None:
        """Forget a reader that waits no more."""
        self._waiting.pop(reader, None)

    def count_read(self) -> None:
        """Count a read; where there were many in the time of a round, rounds begin."""
        self._reads += 1
        if self.are_held:
            return
        timer = self._timer or asyncio.get_running_loop()
        now = timer.time()
        if now - self._counted_from > ROUND_SECONDS:
            self._counted_from, self._reads = now, 1
        elif self._reads >= BUSY_READS:
            self._reads = self._quiet_rounds = 0
            self.are_held = True
            timer.call_later(ROUND_SECONDS, self._begin)

    def _begin(self) -> None:
        self._quiet_rounds = 0 if self._reads >= BUSY_READS else self._quiet_rounds + 1
        self._reads = 0
        self.are_held = self._quiet_rounds < QUIET_ROUNDS
        if self.are_held:
            (self._timer or asyncio.get_running_loop()).call_later(ROUND_SECONDS, self._begin)
        woken = [reader for reader in self._waiting if reader.has_news or not self.are_held]
        for reader in woken:
            del self._waiting[reader]
            reader.wake()


class RoundedReader:
    """Reads one body."""

    def __init__(self, content: aiohttp.StreamReader, rounds: ReadRounds) -> None:
        self._content = content
        self._rounds = rounds
        self._read_bytes = 0
        self._wait = asyncio.Event()

    @property
    def has_news(self) -> bool:
        """Whether there is something to be read, the end, or an error."""
        content = self._content
        return content.total_bytes != self._read_bytes or content.is_eof() or content.exception() is not None

    def wake(self) -> None:
        """Let it read."""
        self._wait.set()

    def read(self, *, at_once: bool) -> Coroutine[Any, Any, bytes]:
        """Wait for bytes, unless `at_once` for a round, and return all that have come; none is the end."""
        is_held = self._rounds.are_held and not at_once
        return self._read_in_round() if is_held else self._content.readany()

    def note_read(self) -> None:
        """Note that what has come was read."""
        self._read_bytes = self._content.total_bytes
        self._rounds.count_read()

    async def _read_in_round(self) -> bytes:
        self._wait.clear()
        self._rounds.join(self)
        try:
            await self._wait.wait()
        finally:
            self._rounds.leave(self)
        return await self._content.readany()
