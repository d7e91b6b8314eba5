"""Stop signals in Redis: a key that outlasts the moment, and a stream that wakes who waits now."""

import asyncio
from collections.abc import Iterable

from redis.exceptions import RedisError

from backend.turns.redis.client import BLOCK_MILLISECONDS, RedisClient, answered, translated_redis_errors
from backend.turns.redis.entries import entries_of

_STREAM = "ballast:stops"
_FIELD = b"response"
_WISHES_IN_STREAM = 10_000
_PAUSE_SECONDS = 0.2
_BEGINNING = "0-0"


class RedisStopSignals:
    """Carries wishes between replicas; one reading connection a process, made when the first turn waits.

    A wish is kept for `wish_seconds`. While Redis is away a waiting turn just goes on waiting; wishes that were
    sent meanwhile are looked up when it is back.
    """

    def __init__(self, client: RedisClient, *, wish_seconds: float = 3600.0) -> None:
        self._client = client
        self._wish_milliseconds = int(wish_seconds * 1000)
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._task: asyncio.Task[None] | None = None

    async def send(self, response_id: str) -> None:
        """Ask that the turn stops.

        Raises:
            Unavailable: Redis is away. Retryable.
        """
        pipeline = self._client.pipeline(transaction=False)
        pipeline.set(_key(response_id), b"1", px=self._wish_milliseconds)
        # A repeated entry wakes twice, which is once: its id may be the server's.
        pipeline.xadd(_STREAM, {_FIELD: response_id.encode()}, maxlen=_WISHES_IN_STREAM, approximate=True)
        pipeline.pexpire(_STREAM, self._wish_milliseconds)
        with translated_redis_errors():
            await answered(pipeline.execute())

    async def wait(self, response_id: str) -> None:
        """Return when someone has asked."""
        waiter = asyncio.Event()
        waiters = self._waiting.setdefault(response_id, set())
        waiters.add(waiter)
        try:
            await self._look_up_or_listen(response_id)
            await waiter.wait()
        finally:
            waiters.discard(waiter)
            if not waiters:
                self._waiting.pop(response_id, None)

    async def aclose(self) -> None:
        """Stop listening; the client is the caller's."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _look_up_or_listen(self, response_id: str) -> None:
        """Find a wish from before; a listener that begins looks for all who wait by itself."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="stop signals")
            return
        try:
            await self._look_up([response_id])
        except (RedisError, OSError):
            # The listener meets the same trouble, and looks up again behind it.
            return

    async def _run(self) -> None:
        while True:
            try:
                await self._follow()
            except (RedisError, OSError):
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _follow(self) -> None:
        """Wake waiters as wishes come; look up first what may have been missed."""
        newest = await answered(self._client.xrevrange(_STREAM, count=1))
        cursor = newest[0][0].decode() if newest else _BEGINNING
        await self._look_up(list(self._waiting))
        while True:
            reply = await answered(self._client.xread({_STREAM: cursor}, block=BLOCK_MILLISECONDS))
            for name, fields in entries_of(reply):
                self._wake(fields[_FIELD].decode())
                cursor = name

    async def _look_up(self, response_ids: Iterable[str]) -> None:
        names = list(response_ids)
        if not names:
            return
        wishes = await answered(self._client.mget([_key(name) for name in names]))
        for name, wish in zip(names, wishes, strict=True):
            if wish is not None:
                self._wake(name)

    def _wake(self, response_id: str) -> None:
        for waiter in self._waiting.get(response_id, ()):
            waiter.set()


def _key(response_id: str) -> str:
    return f"ballast:stop:{response_id}"
