"""Watching whether Redis takes writes, so that new turns can be refused at once while it does not."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from backend.foundation.redis.client import await_answer
from backend.foundation.redis.commands import RedisClient
from backend.foundation.services.supervision import Supervisor, beside, stop_task
from shared.errors import Unavailable

INTERVAL_SECONDS = 0.5
_KEY = "ballast:write-check"
_KEPT_MILLISECONDS = 60_000
ANSWER_SECONDS = 0.5
_STEPS = 5
"""An answer is waited for in so many steps: an event loop that was held reads what has come before it counts a step."""

AWAY_AFTER_SECONDS = 1.5
"""Longer than a restart of Redis takes; new turns wait for that rather than being refused."""


class RedisPresence:
    """Writes a key; `is_away` is set when none was written for `away_after_seconds`, and cleared by the next one.

    Seconds in which this process stood still do not count: who does not look sees nothing.
    A Redis that is full, a read-only replica or still loading its data answers a ping, and takes no event.
    """

    def __init__(
        self,
        client: RedisClient,
        interval_seconds: float = INTERVAL_SECONDS,
        away_after_seconds: float = AWAY_AFTER_SECONDS,
    ) -> None:
        self._client = client
        self._interval_seconds = interval_seconds
        self._away_after_seconds = away_after_seconds
        self._silent_seconds = 0.0
        self.is_away = False

    def start(self, supervisor: Supervisor) -> asyncio.Task[None]:
        """Look until the task is cancelled."""
        return supervisor.start("event_store_watch", self.look, self._interval_seconds)

    async def look(self) -> None:
        """Try to write once."""
        began_at = asyncio.get_running_loop().time()
        if await self._takes_writes():
            self._silent_seconds = 0.0
        else:
            tried_seconds = asyncio.get_running_loop().time() - began_at
            self._silent_seconds += min(tried_seconds, ANSWER_SECONDS) + self._interval_seconds
        self.is_away = self._silent_seconds > self._away_after_seconds

    async def _takes_writes(self) -> bool:
        async with beside(await_answer(self._client.set(_KEY, b"1", px=_KEPT_MILLISECONDS))) as writing:
            for _ in range(_STEPS):
                if (await asyncio.wait({writing}, timeout=ANSWER_SECONDS / _STEPS))[0]:
                    break
            with suppress(Unavailable):
                return writing.done() and bool(await writing)
        return False


@asynccontextmanager
async def watching(client: RedisClient, supervisor: Supervisor) -> AsyncGenerator[RedisPresence]:
    """Watch Redis while the block runs."""
    presence = RedisPresence(client)
    task = presence.start(supervisor)
    try:
        yield presence
    finally:
        await stop_task(task)
