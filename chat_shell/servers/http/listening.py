"""The HTTP server (uvicorn), which serves on a socket that is already bound and handles no signals."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import cast

import uvicorn
from fastapi import FastAPI

from chat_shell.servers.http.reading import TimedRequests
from shared.request_timing import ReadLimits
from shared.tls_door import TlsDoor

SLOW_READER_SECONDS = 10
"""How long clients may take to read the rest of their responses when the server stops."""

DEFAULT_LIMITS = ReadLimits()


class HttpServer(uvicorn.Server):
    """Serves until the caller sets `should_exit`."""

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
        """Install no signal handlers."""
        yield

    def send_clients_away(self) -> None:
        """Close idle connections now, and the others behind the answer that they wait for.

        A client that keeps its connection would otherwise go on sending requests to a process that refuses them.
        """
        for connection in list(self.server_state.connections):
            connection.shutdown()


def http_server(app: FastAPI, limits: ReadLimits = DEFAULT_LIMITS, tls: TlsDoor | None = None) -> HttpServer:
    """Build the server; run it with `serve(sockets=[…])`. With `tls` it speaks TLS, and nothing else."""
    return HttpServer(
        uvicorn.Config(
            app,
            loop="uvloop",
            http=cast(type[TimedRequests], partial(TimedRequests, limits)),
            ws="none",
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
