"""The network between backends and chat_shells: streams of `Connect` without gRPC, between the ends of the product."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import grpc
import grpc.aio
from grpc.aio import EOF, BaseError

from backend.chat_shell_client.grpc_client import GrpcChatShell
from backend.chat_shell_client.replica_links import ReplicaLinks
from backend.foundation.services.supervision import Supervisor
from protos.execution.v1 import chat_shell_pb2
from shared.clock import Clock
from tests.simulation.network import Route
from tests.simulation.world import MemberLoop, World

WINDOW_BYTES = 65_536
KEEPALIVE_SECONDS = 40.0
"""After so long gRPC ends the connections to a process that stands still."""

MAX_MESSAGE_BYTES = 8 * 1024 * 1024


def broken(details: str) -> grpc.aio.AioRpcError:
    """Build the error of a call without a connection."""
    none = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, none, none, details)


class Pipe:
    """One direction of a stream: what is written arrives in order, and a writer waits where nobody reads."""

    def __init__(self, route: Route, reader: MemberLoop) -> None:
        self._route = route
        self._reader = reader
        self._inbox: deque[Any] = deque()
        self._newest = 0.0
        self._unread_bytes = 0
        self._change: asyncio.Future[None] | None = None
        self._room: list[asyncio.Future[None]] = []
        self.error: BaseException | None = None

    def send(self, message: bytes | object) -> None:
        """Send a message, or the end."""
        self._unread_bytes += len(message) if isinstance(message, bytes) else 0
        self._newest = max(self._newest, self._route.arrives_at())
        self._reader.call_at(self._newest, self._arrive, message)

    async def write(self, message: bytes) -> None:
        """Send a message once there is room for it."""
        if self._unread_bytes > WINDOW_BYTES:
            self._room.append(room := asyncio.get_running_loop().create_future())
            await room
        self.send(message)

    async def read(self) -> Any:
        """Return the next message."""
        while not self._inbox:
            if self.error is not None:
                raise self.error
            self._change = asyncio.get_running_loop().create_future()
            await self._change
        message = self._inbox.popleft()
        self._unread_bytes -= len(message) if isinstance(message, bytes) else 0
        while self._room and self._unread_bytes <= WINDOW_BYTES:
            waiting = self._room.pop(0)
            waiting.get_loop().call_soon(_wake, waiting)
        return message

    def fail(self, error: BaseException) -> None:
        """End it with an error: for its reader, and for who waits for room."""
        if self.error is None:
            self.error = error
            self._wake_reader()
            for waiting in self._room:
                waiting.get_loop().call_soon(_wake, waiting)

    def _arrive(self, message: object) -> None:
        if self.error is None:
            self._inbox.append(message)
            self._wake_reader()

    def _wake_reader(self) -> None:
        if self._change is not None:
            self._reader.call_soon(_wake, self._change)


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


class Stream:
    """A stream of `Connect`, with an end for each side."""

    def __init__(self, world: World, route: Route, client: MemberLoop, server: MemberLoop) -> None:
        self.world = world
        self.to_server, self.to_client = Pipe(route, server), Pipe(route, client)
        self._route, self._client, self._server = route, client, server
        self._serving: asyncio.Task[Any] | None = None
        self._is_over = False

    def open(self, serve: Callable[["Served"], Coroutine[Any, Any, None]]) -> None:
        """Have the server serve it, once it hears of it."""
        self._route.at_cut(self, self.break_off)
        self._server.call_at(self._route.arrives_at(), self._begin, serve)

    def _begin(self, serve: Callable[["Served"], Coroutine[Any, Any, None]]) -> None:
        if not self._is_over:
            self._serving = self._server.spawn(self._serve(serve))

    async def _serve(self, serve: Callable[["Served"], Coroutine[Any, Any, None]]) -> None:
        await serve(Served(self))
        self.to_client.send(EOF)

    def break_off(self) -> None:
        """Break the connection: each side hears of it."""
        self._route.forget(self)
        self._is_over = True
        error = broken("Socket closed")
        self._client.call_soon(self.to_client.fail, error)
        self._client.call_soon(self.to_server.fail, error)
        self._server.call_soon(self._cancel)

    def _cancel(self) -> None:
        self._is_over = True
        self.to_server.fail(BaseError())
        if self._serving is not None:
            self._serving.cancel()

    def cancel(self) -> None:
        """End it from the client's side; the server hears of it later."""
        self._route.forget(self)
        if not self._is_over:
            self._server.call_at(self._route.arrives_at(), self._cancel)


class Served:
    """The server's end: the part of gRPC's context that a link needs."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def read(self) -> Any:
        return await self._stream.to_server.read()

    async def write(self, body: bytes) -> None:
        if self._stream.to_client.error is not None:
            raise BaseError
        await self._stream.to_client.write(body)


class Call:
    """The client's end: the part of gRPC's call that a link needs."""

    def __init__(self, stream: Stream | None) -> None:
        self._stream = stream

    async def read(self) -> Any:
        if self._stream is None:
            await asyncio.sleep(0.001)
            raise broken("failed to connect to all addresses")
        body = await self._stream.to_client.read()
        return chat_shell_pb2.FromShell.FromString(body) if isinstance(body, bytes) else body

    async def write(self, message: Any) -> None:
        assert self._stream is not None
        if self._stream.to_server.error is not None:
            raise broken("Socket closed")
        await self._stream.to_server.write(message.SerializeToString())

    async def done_writing(self) -> None:
        assert self._stream is not None
        self._stream.to_server.send(EOF)

    def cancel(self) -> bool:
        if self._stream is not None:
            self._stream.cancel()
        return True


class Target:
    """One chat_shell as a backend reaches it."""

    def __init__(self, route: Route) -> None:
        self.route = route
        self.loop: MemberLoop | None = None
        self.serve: Callable[[Served], Coroutine[Any, Any, None]] | None = None
        self.models: bytes = b""


class _Connection:
    """Implements what is used of `LentChannel`: its calls go to the targets in turn."""

    def __init__(self, world: World, targets: list[Target], client: MemberLoop) -> None:
        self.calls = 0
        self.is_left = False
        self.stub = self
        self._world, self._targets, self._client = world, targets, client
        self._next = int(world.dice.random() * len(targets))

    def Connect(self, metadata: object) -> Call:  # noqa: N802 -- gRPC's name
        """Open a stream to the next target that takes connections."""
        target = self._choose()
        if target is None or target.loop is None or target.serve is None:
            return Call(None)
        stream = Stream(self._world, target.route, self._client, target.loop)
        stream.open(target.serve)
        return Call(stream)

    async def ListModels(self, asked: object, metadata: object, timeout: float) -> Any:  # noqa: N802
        """Ask a target for its models."""
        target = self._choose()
        if target is None or target.loop is None:
            raise broken("failed to connect to all addresses")
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        target.loop.call_at(target.route.arrives_at(), self._answer, target.route, answer)
        try:
            async with asyncio.timeout(timeout):
                await answer
        except TimeoutError:
            none = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(grpc.StatusCode.DEADLINE_EXCEEDED, none, none, "late") from None
        return chat_shell_pb2.ListModelsResponse.FromString(target.models)

    def _answer(self, route: Route, answer: asyncio.Future[None]) -> None:
        self._client.call_at(route.arrives_at(), _wake, answer)

    def _choose(self) -> Target | None:
        for _ in self._targets:
            self._next = (self._next + 1) % len(self._targets)
            target = self._targets[self._next]
            if target.loop is not None and not target.route.is_refused:
                return target
        return None


class _Channels:
    """Implements what is used of `CurrentChannel`."""

    def __init__(self, world: World, targets: list[Target], client: MemberLoop) -> None:
        self._make = partial(_Connection, world, targets, client)
        self._current = self._make()

    async def current(self) -> _Connection:
        if self._current.is_left:
            self._current = self._make()
        return self._current

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[_Connection]:
        connection = await self.current()
        connection.calls += 1
        try:
            yield connection
        finally:
            connection.calls -= 1

    def tell_refusal(self, error: object) -> None:
        """Nobody reads it."""

    async def close(self) -> None:
        """Close nothing."""


class LinkedChatShell(GrpcChatShell):
    """The product's client of chat_shell, over simulated streams."""

    def __init__(
        self, world: World, targets: list[Target], loop: MemberLoop, clock: Clock, supervisor: Supervisor
    ) -> None:
        channels = cast(Any, _Channels(world, targets, loop))
        self._channels = channels
        self._metadata = ()
        self._clock = clock
        error_of = partial(self._error_of_call, begun=False)
        self._links = ReplicaLinks(channels, (), MAX_MESSAGE_BYTES, supervisor, error_of)
