"""Watching whether Redis answers, so that new turns can be refused at once while it does not."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from redis.exceptions import RedisError

from backend.turns.redis.client import RedisClient, answered

INTERVAL_SECONDS = 0.5
ANSWER_SECONDS = 0.5

AWAY_AFTER_SECONDS = 1.5
"""Longer than a restart of Redis takes; new turns wait for that rather than being refused."""


class RedisPresence:
    """Pings Redis; `is_away` is set after `away_after_seconds` of silence and cleared by the next answer."""

    def __init__(
        self,
        client: RedisClient,
        interval_seconds: float = INTERVAL_SECONDS,
        away_after_seconds: float = AWAY_AFTER_SECONDS,
    ) -> None:
        self._client = client
        self._interval_seconds = interval_seconds
        self._away_after_seconds = away_after_seconds
        self.is_away = False

    async def watch(self) -> None:
        """Ping until cancelled."""
        loop = asyncio.get_running_loop()
        answered_at = loop.time()
        while True:
            if await self._answers():
                answered_at = loop.time()
            self.is_away = loop.time() - answered_at > self._away_after_seconds
            await asyncio.sleep(self._interval_seconds)

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return bool(await answered(self._client.ping()))
        except (RedisError, OSError):
            return False


@asynccontextmanager
async def watching(client: RedisClient) -> AsyncGenerator[RedisPresence]:
    """Watch Redis while the block runs."""
    presence = RedisPresence(client)
    task = asyncio.create_task(presence.watch(), name="redis presence")
    try:
        yield presence
    finally:
        task.cancel()
        await asyncio.wait([task])
