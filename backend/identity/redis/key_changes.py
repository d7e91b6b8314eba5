"""Telling all replicas over Redis that keys have changed: a stream that each of them reads."""

from collections.abc import Callable
from contextlib import suppress
from typing import cast

from backend.foundation.redis.client import BLOCK_MILLISECONDS, await_answer
from backend.foundation.redis.commands import RedisClient
from shared.errors import Unavailable

_STREAM = "ballast:key_changes"
_BEGINNING = "0-0"


class RedisKeyChanges:
    """Announces changes of keys, and hears of those of all replicas."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def announce(self) -> None:
        """Tell all replicas; those that Redis cannot tell find out by themselves (`KNOWN_SECONDS`)."""
        with suppress(Unavailable):
            await await_answer(self._client.xadd(_STREAM, {b"keys": b"changed"}, maxlen=1, approximate=False))

    async def follow(self, heard: Callable[[], None]) -> None:
        """Call a function whenever keys have changed, and now, as changes may have been missed; does not end.

        Raises:
            Unavailable: Redis is away. Retryable.
        """
        newest = await await_answer(self._client.xrevrange(_STREAM, count=1))
        cursor = newest[0][0].decode() if newest else _BEGINNING
        heard()
        while True:
            reply = await await_answer(self._client.xread({_STREAM: cursor}, block=BLOCK_MILLISECONDS))
            for _, entries in cast(list[tuple[bytes, list[tuple[bytes, object]]]], reply or []):
                cursor = entries[-1][0].decode()
                heard()
