"""Writes to a connection within one step of the event loop leave as one, and none is held back beyond that."""

import asyncio
from typing import cast

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from shared.http_server.connection import JoinedWrites


class Transport:
    """Notes what it is given."""

    def __init__(self) -> None:
        self.given: list[bytes | None] = []

    def write(self, data: bytes) -> None:
        self.given.append(data)

    def close(self) -> None:
        self.given.append(None)

    def is_closing(self) -> bool:
        return None in self.given


def joined() -> tuple[JoinedWrites, Transport]:
    transport = Transport()
    return JoinedWrites(cast(asyncio.Transport, transport), asyncio.get_running_loop()), transport


async def test_what_is_written_in_one_step_leaves_as_one_piece() -> None:
    writes, transport = joined()
    writes.write(b"head")
    writes.write(b" and body")
    assert transport.given == []
    await asyncio.sleep(0)
    writes.write(b", later")
    await asyncio.sleep(0)
    assert transport.given == [b"head and body", b", later"]


async def test_what_is_written_without_a_pause_reaches_the_transport_that_can_hold_it_up() -> None:
    writes, transport = joined()
    for _ in range(3):
        writes.write(bytes(HIGH_WATER_LIMIT))
    assert [len(each or b"") for each in transport.given] == [HIGH_WATER_LIMIT] * 3


async def test_a_connection_is_closed_behind_all_that_was_written() -> None:
    writes, transport = joined()
    writes.write(b"the end")
    writes.close()
    await asyncio.sleep(0)
    assert transport.given == [b"the end", None]
    assert writes.is_closing()
