"""A pooler before PostgreSQL as pgbouncer is in transaction mode: each transaction may meet another session.

The wheels that tests are installed from hold no pgbouncer. This one is stricter than most: it has two sessions for all
its clients, and gives each transaction the one that was used longest ago, so that nothing of the one before is there.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

_SSL_REQUEST = 80877103
_CANCEL_REQUEST = 80877102
_SESSIONS = 2
_KNOWN_SETTINGS = {b"user", b"database", b"application_name", b"client_encoding"}

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Pooler:
    """Lends its sessions of one database to clients, for a transaction each."""

    def __init__(self, server_port: int, user: str, database: str) -> None:
        self._server_port = server_port
        self._startup = _message(b"", b"\0\x03\0\0user\0%b\0database\0%b\0\0" % (user.encode(), database.encode()))
        self._free: asyncio.Queue[Ends] = asyncio.Queue()
        self._writers: list[asyncio.StreamWriter] = []
        self._clients: set[asyncio.Task[object]] = set()
        self.transactions = 0

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator[int]:
        """Take clients while the block runs; gives the port."""
        for _ in range(_SESSIONS):
            reader, writer = await asyncio.open_connection("127.0.0.1", self._server_port)
            self._writers.append(writer)
            writer.write(self._startup)
            await _read_until_ready(reader)
            self._free.put_nowait((reader, writer))
        server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for client in self._clients:
                client.cancel()
            await asyncio.gather(*self._clients, return_exceptions=True)
            for writer in self._writers:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        self._writers.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            if await self._greet(reader, writer):
                while True:
                    await self._run_transaction(await _read(reader), reader, writer)
        writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        size = int.from_bytes(await reader.readexactly(4))
        body = await reader.readexactly(size - 4)
        code = int.from_bytes(body[:4])
        if code == _SSL_REQUEST:
            writer.write(b"N")
            return await self._greet(reader, writer)
        if code == _CANCEL_REQUEST:
            return False
        unknown = sorted(set(body[4:].split(b"\0")[:-2:2]) - _KNOWN_SETTINGS)
        if unknown:
            text = b"unsupported startup parameter: " + unknown[0]
            writer.write(_message(b"E", b"SFATAL\0VFATAL\0C08P01\0M%b\0\0" % text))
            return False
        own_number = b"\0\0\0\x07\0\0\0\x07"
        version = _message(b"S", b"server_version\x0018.0\0") + _message(b"S", b"client_encoding\0UTF8\0")
        writer.write(_message(b"R", b"\0\0\0\0") + version + _message(b"K", own_number) + _message(b"Z", b"I"))
        return True

    async def _run_transaction(self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hand messages on both ways until the session is idle again; a client that leaves has its work undone."""
        if first[:1] == b"X":
            raise ConnectionError
        self.transactions += 1
        session = await self._free.get()
        try:
            session[1].write(first)
            asked = asyncio.create_task(_hand_on(reader, session[1]))
            while (message := await _read(session[0]))[:1] != b"Z" or message[-1:] != b"I":
                writer.write(message)
            asked.cancel()
            with suppress(asyncio.CancelledError):
                await asked
            writer.write(message)
        finally:
            self._free.put_nowait(session)


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hand a client's messages on; each is read whole or not at all, for the reading is ended between two."""
    try:
        while True:
            writer.write(await _read(reader))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.write(_message(b"Q", b"ROLLBACK\0"))


async def _read(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(int.from_bytes(head[1:]) - 4)


async def _read_until_ready(reader: asyncio.StreamReader) -> None:
    while (await _read(reader))[:1] != b"Z":
        pass


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4) + body
