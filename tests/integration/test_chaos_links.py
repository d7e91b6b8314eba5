"""The links of a chaos run pass, refuse, cut, delay and silence real connections."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.chaos.proxy import Link
from tests.servers.ports import free_port

BROKEN = (ConnectionError, asyncio.IncompleteReadError)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while received := await reader.read(100):
        writer.write(received)
        await writer.drain()
    writer.close()


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    """A link to nobody and, as second target, to an echo."""
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    opened = Link((free_port(), server.sockets[0].getsockname()[1]))
    await opened.listen()
    yield opened
    opened.refuse()
    await opened.broken()
    server.close()


@asynccontextmanager
async def connected(link: Link) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
    try:
        writer.write(b"one")
        assert await reader.readexactly(3) == b"one"
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_a_link_passes_to_the_target_that_listens(link: Link) -> None:
    for _ in range(3):
        async with connected(link):
            pass


async def test_a_cut_breaks_what_is_open_and_nothing_else(link: Link) -> None:
    async with connected(link) as (reader, _):
        link.cut()
        with pytest.raises(BROKEN):
            await reader.readexactly(1)
    async with connected(link):
        pass


async def test_who_refuses_takes_no_connection_until_it_is_healed(link: Link) -> None:
    async with connected(link) as (reader, _):
        link.refuse()
        with pytest.raises(BROKEN):
            await reader.readexactly(1)
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", link.port)
    await link.heal()
    async with connected(link):
        pass


async def test_a_link_may_be_healed_twice_at_once(link: Link) -> None:
    link.refuse()
    await asyncio.gather(link.heal(), link.heal())
    async with connected(link):
        pass


async def test_silence_breaks_nothing_and_loses_nothing(link: Link) -> None:
    async with connected(link) as (reader, writer):
        link.silence()
        writer.write(b"two")
        answer = asyncio.create_task(reader.readexactly(3))
        done, _ = await asyncio.wait([answer], timeout=0.1)
        assert not done
        await link.heal()
        assert await answer == b"two"


async def test_a_late_link_delivers_all_in_order(link: Link) -> None:
    async with connected(link) as (reader, writer):
        link.delay_seconds = 0.01
        for piece in (b"1", b"2", b"3"):
            writer.write(piece)
        assert await reader.readexactly(3) == b"123"
