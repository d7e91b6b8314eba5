"""One connection that all short commands of a process share, sent as they come and answered in their order.

The library's client lends a connection to each pipeline, and waits for each answer with a timer of its own: ten times
what the commands cost themselves. It still opens the connection, with all that an address may say.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

import hiredis
from redis.asyncio import Connection, ConnectionPool
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import ResponseError

from backend.foundation.redis.commands import Command

_pack: Callable[[Command], bytes] = cast(Any, hiredis).pack_command

_ATTEMPTS = 2
"""A connection may break while commands are on their way; every command that we send may safely be repeated."""


class SharedConnection:
    """The connection, made at first use, and anew once it has broken or has not answered within its timeout."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._wire: _Wire | None = None
        self._connecting = asyncio.Lock()

    async def send(self, commands: Sequence[Command]) -> list[object]:
        """Send commands in one piece; return their answers, of which those of refused ones are exceptions.

        Raises:
            RedisError, OSError: there is no connection.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return await (await self._connect()).send(commands)
            except Disconnected:
                continue
        return await (await self._connect()).send(commands)

    async def close(self) -> None:
        """Close the connection."""
        if self._wire is not None:
            await self._wire.close()

    async def _connect(self) -> "_Wire":
        async with self._connecting:
            if self._wire is None or self._wire.has_broken:
                await self.close()
                connection = cast(Connection, self._pool.make_connection())
                await connection.connect()
                self._wire = _Wire(connection)
            return self._wire


class _Wire(asyncio.Protocol):
    """Takes over the transport of a connection that the library has opened."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._silence_seconds: float = connection.socket_timeout or 0.0
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.WriteTransport = cast(Any, connection)._writer.transport  # noqa: SLF001 -- it has no other
        self._transport.set_protocol(self)
        self._parser = hiredis.Reader(replyError=_refusal)
        self._answers: list[object] = []
        self._awaited: deque[tuple[int, asyncio.Future[list[object]]]] = deque()
        self._answered_at = self._loop.time()
        self._watch: asyncio.TimerHandle | None = None
        self.has_broken = False

    def send(self, commands: Sequence[Command]) -> asyncio.Future[list[object]]:
        """Send commands; return what gets their answers."""
        future: asyncio.Future[list[object]] = self._loop.create_future()
        if self.has_broken:
            future.set_exception(Disconnected("The connection has broken."))
            return future
        if not self._awaited:
            self._answered_at = self._loop.time()
        self._awaited.append((len(commands), future))
        self._transport.write(b"".join([_pack(command) for command in commands]))
        if self._watch is None:
            self._watch = self._loop.call_later(self._silence_seconds, self._check_silence)
        return future

    async def close(self) -> None:
        """Close the connection."""
        self.connection_lost(None)
        await self._connection.disconnect(nowait=True)

    def data_received(self, data: bytes) -> None:
        """Hand the answers to those who wait for them."""
        self._answered_at = self._loop.time()
        self._parser.feed(data)
        while (answer := self._parser.gets()) is not False:
            self._answers.append(answer)
            count, future = self._awaited[0]
            if len(self._answers) == count:
                self._awaited.popleft()
                answers, self._answers = self._answers, []
                if not future.done():
                    future.set_result(answers)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell all who wait."""
        self.has_broken = True
        if self._watch is not None:
            self._watch.cancel()
        while self._awaited:
            _, future = self._awaited.popleft()
            if not future.done():
                future.set_exception(Disconnected("The connection has broken."))

    def _check_silence(self) -> None:
        """End a connection over which no answer comes."""
        self._watch = None
        if not self._awaited:
            return
        left = self._answered_at + self._silence_seconds - self._loop.time()
        if left <= 0:
            self._transport.abort()
        else:
            self._watch = self._loop.call_later(left, self._check_silence)


def _refusal(said: str) -> ResponseError:
    """Return what the library makes of an error that a command gets."""
    return ResponseError(said.removeprefix("ERR "))
