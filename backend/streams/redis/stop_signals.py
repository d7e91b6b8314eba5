"""Signals to running turns in Redis: a key that keeps each, and a stream that wakes the tasks that wait already."""

import asyncio
from collections.abc import Sequence

from backend.foundation.redis.client import BLOCK_MILLISECONDS, await_answer
from backend.foundation.redis.commands import RedisClient
from backend.foundation.services.supervision import Supervisor, stop_task
from backend.foundation.services.wakeups import NamedWakeups
from backend.streams.redis.entries import entries_of
from shared.errors import Unavailable

_STREAM = "ballast:stops"
_FIELD = b"response"
_SIGNALS_IN_STREAM = 10_000
_BEGINNING = "0-0"


class RedisStopSignals:
    """Carries signals between replicas over one reading connection a process, opened when the first turn waits.

    A signal is kept for `kept_seconds`. While Redis is away waiting turns go on waiting; signals that were sent
    meanwhile are looked up when it is back.
    """

    def __init__(self, client: RedisClient, supervisor: Supervisor, *, kept_seconds: float = 3600.0) -> None:
        self._client = client
        self._supervisor = supervisor
        self._kept_milliseconds = int(kept_seconds * 1000)
        self._waiting = NamedWakeups()
        self._task: asyncio.Task[None] | None = None

    async def send(self, name: str) -> None:
        """Send a signal; those of this process that wait for it are told at once, whatever becomes of Redis.

        Raises:
            Unavailable: Redis is away. Retryable.
        """
        self._waiting.wake(name)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.set(_key(name), b"1", px=self._kept_milliseconds)
        # The server chooses the entry's id: an entry that a retry repeats only wakes the same tasks twice.
        pipeline.xadd(_STREAM, {_FIELD: name.encode()}, maxlen=_SIGNALS_IN_STREAM, approximate=True)
        pipeline.pexpire(_STREAM, self._kept_milliseconds)
        await await_answer(pipeline.execute())

    async def wait(self, *names: str) -> str:
        """Return the first of these signals that was sent; one sent before the call counts."""
        with self._waiting.waiting(names) as heard:
            await self._look_up_or_listen(names)
            return await heard

    async def aclose(self) -> None:
        """Stop listening; the caller closes the client."""
        await stop_task(self._task)
        self._task = None

    async def _look_up_or_listen(self, names: Sequence[str]) -> None:
        """Look up signals sent before; a listener that starts looks up those of all waiting turns itself."""
        if self._task is None:
            self._task = self._supervisor.start("stop_signals", self._follow)
            return
        try:
            await self._look_up(names)
        except Unavailable:
            # The listener gets the same error, and looks up all waiting turns again when Redis is back.
            return

    async def _follow(self) -> None:
        """Look up signals that may have been missed, then wake tasks as signals arrive."""
        newest = await await_answer(self._client.xrevrange(_STREAM, count=1))
        cursor = newest[0][0].decode() if newest else _BEGINNING
        await self._look_up(self._waiting.names)
        while True:
            reply = await await_answer(self._client.xread({_STREAM: cursor}, block=BLOCK_MILLISECONDS))
            for name, fields in entries_of(reply):
                self._waiting.wake(fields[_FIELD].decode())
                cursor = name

    async def _look_up(self, names: Sequence[str]) -> None:
        if not names:
            return
        signals = await await_answer(self._client.mget([_key(name) for name in names]))
        for name, signal in zip(names, signals, strict=True):
            if signal is not None:
                self._waiting.wake(name)


def _key(name: str) -> str:
    return f"ballast:stop:{name}"
