"""What stands at the address of the keys is hostile: it takes neither memory nor time, and no token gets in by it."""

import asyncio
import gzip
import secrets
import shutil
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import sample
from time import perf_counter

import pytest

from backend.foundation.sql.chosen import open_database
from backend.identity.domain import KEY_PREFIX, KeyRole
from backend.identity.services import KEY_BYTES, Authenticate, KeyAdministration, KnownKeys
from backend.identity.sql.api_keys import SqlApiKeyStore
from backend.identity.tokens.verifier import MAX_KEY_SET_BYTES, ProviderKeys, fetch_over_http
from shared.clock import SystemClock
from shared.errors import Unauthenticated
from tests.fakes.clock import FakeClock
from tests.fakes.identity_provider import IdentityProvider
from tests.leaks.wire import auc
from tests.patience import PATIENCE_SECONDS

HUGE_BYTES = 50 * 2**20
MOST_TAKEN_BYTES = 8 * 2**20
"""What the windows of both sides may hold beside the bytes that are read."""

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


class HostileServer:
    """Answers every request in one way; `asked` counts them by their paths."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[bytes] = []
        self._answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(request.split()[1])
        try:
            await self._answer(writer)
        except ConnectionError:
            """The other side has had enough."""
        finally:
            writer.close()


@asynccontextmanager
async def hostile(answer: Answer) -> AsyncGenerator[tuple[HostileServer, str]]:
    hostile = HostileServer(answer)
    server = await asyncio.start_server(hostile.serve, "127.0.0.1", 0)
    async with asyncio.timeout(PATIENCE_SECONDS), server:
        yield hostile, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys"


async def test_fifty_megabytes_are_not_read() -> None:
    sent = 0

    async def answer(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % HUGE_BYTES)
        while sent < HUGE_BYTES:
            writer.write(b" " * 65_536)
            sent += 65_536
            await writer.drain()

    async with hostile(answer) as (_, address):
        with pytest.raises(ValueError, match="longer"):
            await fetch_over_http(address, None)()
    assert sent < MAX_KEY_SET_BYTES + 2 * MOST_TAKEN_BYTES


async def test_fifty_megabytes_that_came_packed_are_not_unpacked() -> None:
    packed = gzip.compress(bytes(HUGE_BYTES), 9)

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed))
        writer.write(packed)
        await writer.drain()

    async with hostile(answer) as (_, address):
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match="longer"):
                await fetch_over_http(address, None)()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < MOST_TAKEN_BYTES


async def test_a_redirection_is_not_followed() -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()

    async with hostile(answer) as (server, address):
        with pytest.raises(ValueError, match="302"):
            await fetch_over_http(address, None)()
        assert server.asked == [b"/keys"]


@pytest.mark.parametrize("dripped", [b"", b" "], ids=["silent", "a byte at a time"])
async def test_who_keeps_the_fetch_waiting_is_left(dripped: bytes) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n")
        while True:
            writer.write(dripped)
            await writer.drain()
            await asyncio.sleep(0.02)

    async with hostile(answer) as (_, address):
        with pytest.raises(TimeoutError):
            await fetch_over_http(address, None, seconds=0.2)()


async def test_ten_thousand_unknown_keys_fetch_once_and_hold_up_no_known_one() -> None:
    provider, is_held, clock = IdentityProvider(), asyncio.Event(), FakeClock()

    async def fetch() -> bytes:
        if provider.fetches:
            await is_held.wait()
        return await provider.fetch()

    keys = ProviderKeys(fetch, clock)
    await keys.refresh()
    clock.advance(3600)
    async with asyncio.timeout(PATIENCE_SECONDS):
        asking = [asyncio.create_task(keys.find(f"unknown-{number}", "RS256")) for number in range(10_000)]
        await asyncio.sleep(0)
        assert (await keys.find("first", "RS256")).key_id == "first"
        is_held.set()
        refused = await asyncio.gather(*asking, return_exceptions=True)
    assert {type(each) for each in refused} == {Unauthenticated}
    assert provider.fetches == 2


SAMPLES = 1_000
BAR = 0.55


async def test_no_time_tells_how_near_a_key_is_to_a_valid_one(newest_sqlite: Path, tmp_path: Path) -> None:
    database, clock = open_database(f"sqlite+aiosqlite:///{shutil.copy(newest_sqlite, tmp_path)}"), SystemClock()
    try:
        store, known = SqlApiKeyStore(database), KnownKeys(clock)
        administration = KeyAdministration(store, clock, known)
        _, valid = await administration.issue("ann", KeyRole.USER)
        revoked, secret = await administration.issue("bob", KeyRole.USER)
        await administration.revoke(revoked.id)
        authenticate = Authenticate(store, clock, known)

        async def seconds(key: str) -> float:
            began_at = perf_counter()
            with pytest.raises(Unauthenticated):
                await authenticate.identify(key)
            return perf_counter() - began_at

        for near in (valid[:-1] + ("A" if valid[-1] != "A" else "B"), secret):
            taken: list[tuple[float, int]] = []
            for _ in range(SAMPLES):
                unknown = KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)
                taken += [(await seconds(key), kind) for key, kind in sample(((near, 1), (unknown, 0)), 2)]
            assert 1 - BAR <= auc(taken) <= BAR
    finally:
        await database.close()
