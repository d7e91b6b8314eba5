"""Stop signals in Redis: a key that outlasts the moment, and a message that wakes who waits now."""

import asyncio
from collections.abc import Iterable
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from backend.adapters.redis.client import AWAY, answered, translated

_CHANNEL = "ballast:stop"
_LISTEN_SECONDS = 2.0
_PAUSE_SECONDS = 0.2


class RedisStopSignals:
    """Carries wishes between replicas over one subscription a process, made when the first turn waits.

    A wish is kept for `wish_seconds`. While Redis is away a waiting turn just goes on waiting; wishes that were
    sent meanwhile are looked up when it is back.
    """

    def __init__(self, client: Redis, *, wish_seconds: float = 3600.0) -> None:
        self._client: Any = client
        self._wish_seconds = wish_seconds
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_listening = asyncio.Event()

    async def send(self, response_id: str) -> None:
        """Ask that the turn stops.

        Raises:
            Unavailable: Redis is away. Retryable.
        """
        pipeline: Any = self._client.pipeline(transaction=False)
        pipeline.set(_key(response_id), b"1", px=int(self._wish_seconds * 1000))
        pipeline.publish(_CHANNEL, response_id)
        with translated():
            await answered(pipeline.execute())

    async def wait(self, response_id: str) -> None:
        """Return when someone has asked."""
        waiter = asyncio.Event()
        waiters = self._waiting.setdefault(response_id, set())
        waiters.add(waiter)
        try:
            self._listen()
            await self._look_up_if_listening(response_id)
            await waiter.wait()
        finally:
            waiters.discard(waiter)
            if not waiters:
                self._waiting.pop(response_id, None)

    async def aclose(self) -> None:
        """End the subscription; the client is the caller's."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def _listen(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="stop signals")

    async def _look_up_if_listening(self, response_id: str) -> None:
        """Find a wish from before; a subscription that is only beginning looks by itself."""
        if not self._is_listening.is_set():
            return
        try:
            await self._look_up([response_id])
        except AWAY:
            self._is_listening.clear()

    async def _run(self) -> None:
        while True:
            try:
                async with self._client.pubsub() as subscription:
                    await self._follow(subscription)
            except (RedisError, OSError):
                self._is_listening.clear()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _follow(self, subscription: Any) -> None:
        """Wake waiters as messages come; look up what may have been missed whenever a subscription begins."""
        await answered(subscription.subscribe(_CHANNEL))
        while True:
            message: Any = await answered(subscription.get_message(timeout=_LISTEN_SECONDS))
            if message is not None and message["type"] == "message":
                self._wake(message["data"].decode())
                continue
            if message is not None or not self._is_listening.is_set():
                self._is_listening.set()
                await self._look_up(list(self._waiting))

    async def _look_up(self, response_ids: Iterable[str]) -> None:
        names = list(response_ids)
        if not names:
            return
        wishes: list[Any] = await answered(self._client.mget([_key(name) for name in names]))
        for name, wish in zip(names, wishes, strict=True):
            if wish is not None:
                self._wake(name)

    def _wake(self, response_id: str) -> None:
        for waiter in self._waiting.get(response_id, ()):
            waiter.set()


def _key(response_id: str) -> str:
    return f"ballast:stop:{response_id}"
