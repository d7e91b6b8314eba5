"""uvicorn on a socket that is bound beforehand, with signals left to the application."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import cast

import uvicorn
from fastapi import FastAPI

from backend.foundation.http.reading import ConnectionRules, TimedProtocol, UnfinishedHeads
from shared.request_timing import ReadLimits
from shared.tls_door import TlsDoor

SLOW_READER_SECONDS = 10
"""How long open connections may take to end after the shutdown of the application."""

SOCKET_PROTOCOL = "backend.foundation.http.sockets:DrainingSocket"
"""Imported by uvicorn, with its library, where something is served."""

LONGEST_SOCKET_MESSAGE_BYTES = 4_194_304
"""A message is held whole, beside those of all other sockets; what is longer comes as the body of a request."""

DEFAULT_LIMITS = ReadLimits()


class HttpServer(uvicorn.Server):
    """Serves until `should_exit`; the application decides when that is."""

    def __init__(self, config: uvicorn.Config, tls: TlsDoor | None = None) -> None:
        super().__init__(config)
        self._tls = tls

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve on sockets that listen."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections; those of TLS come by the door for it."""
        self._accepting: list[asyncio.Task[None]] = []
        await super().startup(sockets if self._tls is None else [])
        if self._tls is not None:
            self._accepting = [
                self._group.create_task(self._tls.accept(each, self._new_connection)) for each in sockets or ()
            ]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more, and wait for the answers that are under way."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets)

    def _new_connection(self) -> asyncio.Protocol:
        state = {"config": self.config, "server_state": self.server_state, "app_state": self.lifespan.state}
        return cast(Callable[..., asyncio.Protocol], self.config.http_protocol_class)(**state)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signal handlers alone."""
        yield

    def send_clients_away(self) -> None:
        """Close idle connections now, and the others behind the answer that they wait for.

        A client that keeps its connection would otherwise go on sending requests to a process that refuses them.
        """
        for connection in list(self.server_state.connections):
            connection.shutdown()


def http_server(
    app: FastAPI,
    limits: ReadLimits = DEFAULT_LIMITS,
    allows: Callable[[str], bool] = lambda _: False,
    tls: TlsDoor | None = None,
) -> HttpServer:
    """Build the server; run it with `serve(sockets=[…])`.

    `allows` tells of an origin whether its scripts may read what is refused before the application sees it. With `tls`
    it speaks TLS, and nothing else.
    """
    # uvicorn calls it like the class of a protocol, once for each connection.
    protocol = partial(TimedProtocol, ConnectionRules(limits, UnfinishedHeads(limits.unfinished_heads), allows))
    return HttpServer(
        uvicorn.Config(
            app,
            loop="uvloop",
            http=cast(type[TimedProtocol], protocol),
            ws=SOCKET_PROTOCOL,
            ws_max_size=LONGEST_SOCKET_MESSAGE_BYTES,
            ws_per_message_deflate=False,
            timeout_keep_alive=limits.idle_seconds,
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=SLOW_READER_SECONDS,
        ),
        tls,
    )


@asynccontextmanager
async def while_serving(server: HttpServer, listening: socket.socket) -> AsyncGenerator[None]:
    """Serve while the block runs."""
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listening]))
        try:
            yield
        finally:
            server.should_exit = True
