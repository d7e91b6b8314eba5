"""Signals to running turns, in memory."""

from collections import OrderedDict

from backend.foundation.services.wakeups import NamedWakeups

_SIGNALS_KEPT = 10_000


class MemoryStopSignals:
    """Wakes waiting tasks, and keeps the newest signals for turns that begin to wait later."""

    def __init__(self) -> None:
        self._waiting = NamedWakeups()
        self._sent: OrderedDict[str, None] = OrderedDict()

    async def send(self, name: str) -> None:
        """Send a signal."""
        self._sent[name] = None
        self._sent.move_to_end(name)
        if len(self._sent) > _SIGNALS_KEPT:
            self._sent.popitem(last=False)
        self._waiting.wake(name)

    async def wait(self, *names: str) -> str:
        """Return the first of these signals that was sent; one sent before the call counts."""
        for name in names:
            if name in self._sent:
                return name
        with self._waiting.waiting(names) as heard:
            return await heard
