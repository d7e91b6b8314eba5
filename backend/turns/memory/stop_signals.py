"""Stop signals in memory."""

import asyncio
from collections import OrderedDict

_WISHES_KEPT = 10_000


class MemoryStopSignals:
    """Wakes who waits, and remembers the newest wishes for who waits later."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._wishes: OrderedDict[str, None] = OrderedDict()

    async def send(self, response_id: str) -> None:
        """Ask that the turn stops."""
        self._wishes[response_id] = None
        self._wishes.move_to_end(response_id)
        if len(self._wishes) > _WISHES_KEPT:
            self._wishes.popitem(last=False)
        for waiter in self._waiting.get(response_id, ()):
            waiter.set()

    async def wait(self, response_id: str) -> None:
        """Return when someone has asked."""
        if response_id in self._wishes:
            return
        waiter = asyncio.Event()
        waiters = self._waiting.setdefault(response_id, set())
        waiters.add(waiter)
        try:
            await waiter.wait()
        finally:
            waiters.discard(waiter)
            if not waiters:
                self._waiting.pop(response_id, None)
