"""uvicorn on a socket that is bound beforehand, with signals left to the application."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import cast

import uvicorn
from fastapi import FastAPI

from backend.foundation.http.reading import ConnectionRules, TimedProtocol, UnfinishedHeads
from shared.request_timing import ReadLimits

SLOW_READER_SECONDS = 10
"""How long open connections may take to end after the shutdown of the application."""

KEEP_ALIVE_SECONDS = 5
"""How long a connection may be idle between two requests."""

DEFAULT_LIMITS = ReadLimits()


class HttpServer(uvicorn.Server):
    """Serves until `should_exit`; the application decides when that is."""

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
    tls: ssl.SSLContext | None = None,
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
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=SLOW_READER_SECONDS,
            ssl_context_factory=(lambda _config, _default: tls) if tls is not None else None,
        )
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


def listening_socket(host: str, port: int) -> socket.socket:
    """Bind and listen.

    Raises:
        OSError: the address is in use, or does not belong to this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)
