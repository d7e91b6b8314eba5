"""Connections that carry more than one request, at the HTTP server of both services."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from fastapi import FastAPI, Response

from shared.http_server.connection import ConnectionRules
from shared.http_server.server import build_server
from shared.http_server.timing import ReadLimits
from shared.listening import open_listening_socket
from tests.patience import PATIENCE_SECONDS

LIMITS = ReadLimits(seconds=0.5, unfinished_heads=3, idle_seconds=1)
SLOW = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
QUICK = b"GET /quick HTTP/1.1\r\nHost: x\r\n\r\n"
UNREAD = b"POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"
WHOLE_BODY = b"late"
END = b"\r\n\r\nok"


class House:
    """An application whose slow answers wait for `gate`."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.app = FastAPI()
        self.app.add_api_route("/slow", self._slow)
        self.app.add_api_route("/quick", self._quick)
        self.app.add_api_route("/unread", self._quick, methods=["POST"])

    async def _slow(self) -> Response:
        await self.gate.wait()
        return Response("ok")

    async def _quick(self) -> Response:
        return Response("ok")


class Connection:
    """One connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, sent: bytes) -> None:
        """Send."""
        self._writer.write(sent)

    async def answered(self) -> None:
        """Wait for a whole answer."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer = await self._reader.readuntil(END)
        assert answer.startswith(b"HTTP/1.1 200 ")

    async def rest(self) -> bytes:
        """Wait until the server has closed it, be it with something unread, and return what it has said."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                return await self._reader.read()
            except ConnectionResetError:
                return b""

    async def outlives(self, seconds: float) -> None:
        """Fail if it is closed, or anything said, within that time."""
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(seconds):
                pytest.fail(f"it has ended: {await self._reader.read(1000)!r}")


@asynccontextmanager
async def serving(house: House) -> AsyncGenerator[Callable[[], Awaitable[Connection]]]:
    """Serve while the block runs."""
    server = build_server(house.app, ConnectionRules(LIMITS))
    listener = open_listening_socket("127.0.0.1", 0)
    writers: list[asyncio.StreamWriter] = []

    async def opened() -> Connection:
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writers.append(writer)
        return Connection(reader, writer)

    serving_task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield opened
    finally:
        house.gate.set()
        server.should_exit = True
        for writer in writers:
            writer.close()
        await serving_task


async def test_the_body_behind_an_answer_may_come_with_the_next_request() -> None:
    """The time of idle connections begins behind that body, and not to end in the middle of the next answer."""
    house = House()
    async with serving(house) as opened:
        connection = await opened()
        connection.send(UNREAD)
        await connection.answered()
        connection.send(WHOLE_BODY + SLOW)
        await connection.outlives(1.5 * LIMITS.idle_seconds)
        house.gate.set()
        await connection.answered()


@pytest.mark.parametrize("sent", [WHOLE_BODY, WHOLE_BODY + b"\r\n"], ids=["body", "body and a blank line"])
async def test_a_connection_is_idle_behind_a_body_that_came_behind_its_answer(sent: bytes) -> None:
    async with serving(House()) as opened:
        connection = await opened()
        connection.send(UNREAD)
        await connection.answered()
        connection.send(sent)
        assert await connection.rest() == b""


async def test_a_connection_is_idle_though_a_blank_line_came() -> None:
    async with serving(House()) as opened:
        connection = await opened()
        connection.send(QUICK)
        await connection.answered()
        connection.send(b"\r\n")
        assert await connection.rest() == b""


async def test_half_a_request_behind_one_that_is_being_answered_ends_no_answer() -> None:
    """The server itself reads nothing more meanwhile, so that the other half cannot come."""
    house = House()
    async with serving(house) as opened:
        connection = await opened()
        connection.send(SLOW + QUICK + QUICK[:9])
        await connection.outlives(3 * LIMITS.seconds)
        connection.send(QUICK[9:])
        house.gate.set()
        for _ in range(3):
            await connection.answered()


async def test_half_a_request_is_late_once_the_answer_before_it_is_over() -> None:
    house = House()
    async with serving(house) as opened:
        connection = await opened()
        connection.send(SLOW + QUICK[:9])
        await connection.outlives(3 * LIMITS.seconds)
        house.gate.set()
        await connection.answered()
        assert (await connection.rest()).startswith(b"HTTP/1.1 408 ")


async def test_a_body_that_stays_away_behind_its_answer_is_not_answered_again() -> None:
    async with serving(House()) as opened:
        connection = await opened()
        connection.send(UNREAD)
        await connection.answered()
        connection.send(WHOLE_BODY[:2])
        assert await connection.rest() == b""


async def test_connections_that_are_answered_do_not_make_room_for_new_ones() -> None:
    house = House()
    async with serving(house) as opened:
        connection = await opened()
        connection.send(SLOW + QUICK[:9])
        for _ in range(2 * LIMITS.unfinished_heads):
            await opened()
        await connection.outlives(LIMITS.seconds / 2)
        house.gate.set()
        await connection.answered()
