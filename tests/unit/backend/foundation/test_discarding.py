"""Bytes of a body that nobody reads: taken in at a bounded rate, and not for ever."""

import asyncio
from contextlib import suppress
from typing import Any, cast

import pytest
import uvicorn
from uvicorn.server import ServerState

from shared.http_server.connection import (
    DISCARDED_BYTES_A_SECOND,
    LONGEST_PAUSE_SECONDS,
    PIECE_BYTES,
    ConnectionRules,
    DiscardPace,
    TimedProtocol,
)
from shared.http_server.timing import ReadLimits
from tests.patience import PATIENCE_SECONDS

UNREAD_BYTES = 100_000
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
LONG = b"4000\r\n" + bytes(0x4000) + b"\r\n"
SHORT = 1000 * b"1\r\na\r\n"
NONE = b"1;" + 0x4000 * b"a"
"""The beginning of a chunk whose extension does not end."""


class Transport(asyncio.Transport):
    """Notes whether it is read and open."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.is_read = True
        self.is_open = True

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def is_closing(self) -> bool:
        return not self.is_open

    def close(self) -> None:
        self.is_open = False


class Costs(DiscardPace):
    """Notes what was lost, and asks for no pause."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.bytes: list[int] = []

    def pause_seconds(self, cost_bytes: int) -> float:
        self.bytes.append(cost_bytes)
        return 0.0


async def waits(_scope: Any, _receive: Any, _send: Any) -> None:
    """Answer nothing, and read nothing."""
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


class Connection:
    """One connection whose request an application has, which reads nothing of it."""

    def __init__(self) -> None:
        self.costs, self.transport = Costs(), Transport()
        rules = ConnectionRules(ReadLimits(unread_bytes=UNREAD_BYTES), discards=self.costs)
        config = uvicorn.Config(cast(Any, waits), lifespan="off", log_config=None)
        config.load()
        self.state = ServerState()
        self.protocol = TimedProtocol(rules, config=config, server_state=self.state, app_state={})
        self.transport.set_protocol(self.protocol)
        self.protocol.connection_made(self.transport)
        self.protocol.data_received(HEAD)

    def answer(self) -> None:
        self.protocol.cycle.response_complete = True

    def close(self) -> None:
        self.protocol.connection_lost(None)
        for task in self.state.tasks:
            task.cancel()


@pytest.fixture
async def connection() -> Any:
    connection = Connection()
    yield connection
    connection.close()


async def test_what_is_kept_for_an_application_costs_nothing(connection: Connection) -> None:
    connection.protocol.data_received(LONG)
    assert (connection.transport.is_read, connection.costs.bytes) == (True, [])


@pytest.mark.parametrize(("piece", "pieces"), [(LONG, 1), (SHORT, 1000), (NONE, 0)], ids=["long", "short", "none"])
async def test_what_comes_behind_an_answer_is_read_on_after_a_pause(
    connection: Connection, piece: bytes, pieces: int
) -> None:
    connection.answer()
    connection.protocol.data_received(piece)
    assert not connection.transport.is_read
    assert connection.costs.bytes == [len(piece) + PIECE_BYTES * pieces]
    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.sleep(0.01)
    assert connection.transport.is_read


async def test_what_stands_around_the_body_costs_before_there_is_an_answer(connection: Connection) -> None:
    connection.protocol.data_received(NONE)
    assert connection.costs.bytes == [len(NONE)]


async def test_a_body_that_does_not_end_behind_its_answer_ends_its_connection(connection: Connection) -> None:
    connection.answer()
    for _ in range(UNREAD_BYTES // len(LONG)):
        connection.protocol.data_received(LONG)
    assert connection.transport.is_open
    connection.protocol.data_received(LONG)
    assert not connection.transport.is_open


async def test_each_request_of_a_connection_may_have_an_end_that_nobody_reads(connection: Connection) -> None:
    for _ in range(3):
        connection.answer()
        for _ in range(UNREAD_BYTES // len(LONG)):
            connection.protocol.data_received(LONG)
        connection.protocol.data_received(b"0\r\n\r\n" + HEAD)
    assert connection.transport.is_open


async def test_a_pause_of_the_server_outlasts_one_of_what_is_lost(connection: Connection) -> None:
    connection.protocol.data_received(NONE)
    connection.protocol.data_received(b"\r\nx\r\n" + 5 * LONG)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.sleep(0.01)
    assert not connection.transport.is_read


def test_all_connections_together_are_read_at_one_rate() -> None:
    seconds = 1000.0
    pace = DiscardPace(lambda: seconds)
    assert [pace.pause_seconds(DISCARDED_BYTES_A_SECOND) for _ in range(3)] == [1.0, 2.0, 3.0]
    assert pace.pause_seconds(DISCARDED_BYTES_A_SECOND * 100) == LONGEST_PAUSE_SECONDS
    seconds += LONGEST_PAUSE_SECONDS
    assert pace.pause_seconds(DISCARDED_BYTES_A_SECOND) == 1.0
