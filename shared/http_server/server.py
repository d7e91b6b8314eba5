"""uvicorn on a socket that is bound beforehand, with signals left to the application."""

import asyncio
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, NamedTuple, cast

import uvicorn

from shared.http_server.connection import ConnectionRules, TimedProtocol
from shared.http_server.tls_listener import TlsListener

SLOW_READER_SECONDS = 10
"""How long clients may take to read the rest of their responses when the server stops."""


class WebSockets(NamedTuple):
    """How WebSockets are served: the protocol, which uvicorn imports as it begins to serve, and its longest message."""

    protocol: str = "none"
    longest_message_bytes: int = 0


NO_SOCKETS = WebSockets()


def stop_event() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set; call it before anything can be asked to stop."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


class HttpServer(uvicorn.Server):
    """Serves until `should_exit`; the application decides when that is."""

    def __init__(self, config: uvicorn.Config, tls: TlsListener | None = None) -> None:
        super().__init__(config)
        self._tls = tls

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve on sockets that listen."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections; those of TLS come by its own listener."""
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


def build_server(
    app: Callable[..., Any],
    rules: ConnectionRules | None = None,
    tls: TlsListener | None = None,
    sockets: WebSockets = NO_SOCKETS,
) -> HttpServer:
    """Build the server of an ASGI application; run it with `serve(sockets=[…])`. With `tls` it speaks nothing else."""
    rules = rules or ConnectionRules()
    return HttpServer(
        uvicorn.Config(
            app,
            loop="uvloop",
            # uvicorn calls it like the class of a protocol, once for each connection
            http=cast(type[TimedProtocol], partial(TimedProtocol, rules)),
            ws=sockets.protocol,
            ws_max_size=sockets.longest_message_bytes,
            ws_per_message_deflate=False,
            timeout_keep_alive=rules.limits.idle_seconds,
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
