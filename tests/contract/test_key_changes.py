"""All replicas hear over Redis that keys have changed."""

import asyncio
from typing import Any

import pytest

from backend.foundation.redis.client import connect
from backend.identity.redis.key_changes import RedisKeyChanges
from shared.errors import Unavailable
from tests.patience import PATIENCE_SECONDS
from tests.servers.valkey import patient_client

NOBODY = "redis://127.0.0.1:1"


async def test_a_change_is_heard_by_all_replicas_and_by_one_that_begins_to_listen(valkey_url: str) -> None:
    clients: list[Any] = [patient_client(valkey_url) for _ in range(2)]
    here, there = map(RedisKeyChanges, clients)
    heard = asyncio.Queue[None]()
    listening = asyncio.create_task(there.follow(lambda: heard.put_nowait(None)))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await heard.get()
        for _ in range(2):
            await here.announce()
            await heard.get()
    assert heard.empty()
    listening.cancel()
    await asyncio.wait([listening])
    for client in clients:
        await client.aclose()


async def test_without_redis_nobody_is_told_and_the_listener_says_so() -> None:
    client = connect(NOBODY)
    changes = RedisKeyChanges(client)
    await changes.announce()
    with pytest.raises(Unavailable):
        await changes.follow(lambda: None)
    await client.aclose()
