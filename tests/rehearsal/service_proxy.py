"""A Service of Kubernetes: one address whose connections go to the endpoints that it knows of at the time."""

import asyncio
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Self

_PIECE_BYTES = 65_536


class ServiceProxy:
    """Passes connections on, each to the next endpoint; one that is open stays with its endpoint to its end.

    Use it as an async context manager; `port` is where it listens.
    """

    def __init__(self) -> None:
        self._endpoints: list[int] = []
        self._turn = count()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def port(self) -> int:
        assert self._server is not None
        return self._server.sockets[0].getsockname()[1]

    def add(self, port: int) -> None:
        """Let new connections reach an endpoint."""
        self._endpoints.append(port)

    def remove(self, port: int) -> None:
        """Let no new connection reach it."""
        self._endpoints.remove(port)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_PIECE_BYTES)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._open:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            await self._pass_on(reader, writer)
        finally:
            self._open.discard(writer)
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._endpoints:
            return
        port = self._endpoints[next(self._turn) % len(self._endpoints)]
        with suppress(OSError):
            inside, outside = await asyncio.open_connection("127.0.0.1", port, limit=_PIECE_BYTES)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_copy(reader, outside))
                    group.create_task(_copy(inside, writer))
            finally:
                outside.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until one side closes; then the other side learns that no more will come."""
    with suppress(OSError):
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
