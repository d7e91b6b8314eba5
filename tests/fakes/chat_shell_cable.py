"""A cable between client and server that can be cut."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Cable:
    """Copies bytes both ways until it is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._end = (host, port)
        self._cut = asyncio.Event()

    def cut(self) -> None:
        """Drop all connections without a word."""
        self._cut.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        far_reader, far_writer = await asyncio.open_connection(*self._end)
        async with asyncio.TaskGroup() as group:
            copies = [
                group.create_task(_copy(reader, far_writer)),
                group.create_task(_copy(far_reader, writer)),
            ]
            cutting = group.create_task(self._cut.wait())
            await asyncio.wait([*copies, cutting], return_when=asyncio.FIRST_COMPLETED)
            for task in (*copies, cutting):
                task.cancel()
        for end in (writer, far_writer):
            end.transport.abort()


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
