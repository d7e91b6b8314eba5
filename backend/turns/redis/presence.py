"""Watching whether Redis is there, so that no new turn has to find out."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from redis.exceptions import RedisError

from backend.turns.redis.client import RedisClient, answered

INTERVAL_SECONDS = 0.5
ANSWER_SECONDS = 0.5

AWAY_AFTER_SECONDS = 1.5
"""Longer than a restart takes, through which new turns rather wait."""


class RedisPresence:
    """Asks Redis again and again; there until it has been silent for a while, and again with its first answer."""

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
        """Ask until cancelled."""
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
