"""Stop signals in memory."""

import asyncio
from collections import OrderedDict
from weakref import WeakValueDictionary

_SIGNALS_KEPT = 10_000


class MemoryStopSignals:
    """Wakes waiting tasks, and keeps the newest signals for turns that begin to wait later."""

    def __init__(self) -> None:
        self._waiting: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        self._sent: OrderedDict[str, None] = OrderedDict()

    async def send(self, response_id: str) -> None:
        """Ask that the turn stops."""
        self._sent[response_id] = None
        self._sent.move_to_end(response_id)
        if len(self._sent) > _SIGNALS_KEPT:
            self._sent.popitem(last=False)
        waiter = self._waiting.get(response_id)
        if waiter is not None:
            waiter.set()

    async def wait(self, response_id: str) -> None:
        """Return when a stop was asked for; a signal sent before the call counts."""
        if response_id not in self._sent:
            waiter = self._waiting.setdefault(response_id, asyncio.Event())
            await waiter.wait()
