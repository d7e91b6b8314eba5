"""A cable between client and server that can be cut."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

ROUNDS_TO_BEGIN = 3
"""Rounds of the event loop from accepting a connection to the call of who serves it."""


class Cable:
    """Copies bytes both ways until it is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._end = (host, port)
        self._cut = asyncio.Event()
        self.carrying: set[asyncio.Task[None]] = set()

    def cut(self) -> None:
        """Drop all connections without a word."""
        self._cut.set()

    def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection in a task of its own."""
        self.carrying.add(asyncio.get_running_loop().create_task(self._carry(reader, writer)))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with _aborting(writer):
            try:
                far_reader, far_writer = await asyncio.open_connection(*self._end)
            except ConnectionError:
                return
            with _aborting(far_writer):
                await self._copy_until_cut((reader, far_writer), (far_reader, writer))

    async def _copy_until_cut(self, *ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        async with asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[Any]] = [group.create_task(_copy(*way)) for way in ways]
            tasks.append(group.create_task(self._cut.wait()))
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()


@contextmanager
def _aborting(writer: asyncio.StreamWriter) -> Generator[None]:
    try:
        yield
    finally:
        writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        return


@asynccontextmanager
async def cable_to(address: str) -> AsyncGenerator[tuple[str, Cable]]:
    """Lay a cable to an address; yield the address of its near end."""
    target = urlsplit(address)
    cable = Cable(target.hostname or "", target.port or 0)
    async with await asyncio.start_server(cable.carry, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"{target.scheme}://127.0.0.1:{port}", cable
        cable.cut()
        server.close()
        for _ in range(ROUNDS_TO_BEGIN):  # a client may connect again at any time
            await asyncio.sleep(0)
        await asyncio.gather(*cable.carrying)
        await asyncio.sleep(0)  # aborted transports are closed in the loop's next round
