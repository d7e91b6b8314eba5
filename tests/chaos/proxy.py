"""TCP connections between the services that can be refused, cut, delayed or silenced."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import count

from tests.servers.ports import free_port

READ_BYTES = 1 << 16
CONNECT_SECONDS = 2.0


class Link:
    """Listens on a port of its own and passes each connection to one of its targets, in turn, that takes it."""

    def __init__(self, targets: Sequence[int]) -> None:
        self.port = free_port()
        self.delay_seconds = 0.0
        self._targets = targets
        self._turns = count()
        self._passing = asyncio.Event()
        self._passing.set()
        self._server: asyncio.Server | None = None
        self._starting = asyncio.Lock()  # two faults of a link may be undone at once
        self._open: set[asyncio.Task[None]] = set()

    async def listen(self) -> None:
        """Take connections."""
        async with self._starting:
            if self._server is None:
                self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=READ_BYTES)

    def refuse(self) -> None:
        """Take no further connections, and cut those there are."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()

    def cut(self) -> None:
        """Break all connections."""
        for task in self._open:
            task.cancel()

    async def broken(self) -> None:
        """Return when the connections that were cut are gone."""
        await asyncio.gather(*self._open, return_exceptions=True)

    def silence(self) -> None:
        """Pass nothing on, and break nothing."""
        self._passing.clear()

    async def heal(self) -> None:
        """Pass everything again."""
        self.delay_seconds = 0.0
        self._passing.set()
        await self.listen()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._join(reader, writer)
        except asyncio.CancelledError:
            """The connection is cut."""
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = await self._connected()
        if target is None:
            return
        there_reader, there_writer = target
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, there_writer))
                group.create_task(self._pass(there_reader, writer))
        finally:
            there_writer.transport.abort()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        first = next(self._turns)
        for place in range(len(self._targets)):
            port = self._targets[(first + place) % len(self._targets)]
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await asyncio.open_connection("127.0.0.1", port, limit=READ_BYTES)
        return None

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while received := await reader.read(READ_BYTES):
                if self.delay_seconds:
                    await asyncio.sleep(self.delay_seconds)
                await self._passing.wait()
                writer.write(received)
                await writer.drain()
        # whoever ends, ends both ways: HTTP, PostgreSQL and Redis know no half-closed connections
        await self._passing.wait()
        writer.close()
