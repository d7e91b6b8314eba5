"""uvicorn on a socket that is bound beforehand, with signals left to the application."""

import socket
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

SLOW_READER_SECONDS = 10
"""How long open connections may take to end after the shutdown of the application."""


class HttpServer(uvicorn.Server):
    """Serves until `should_exit`; the application decides when that is."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signal handlers alone."""
        yield


def http_server(app: FastAPI) -> HttpServer:
    """Build the server; run it with `serve(sockets=[…])`."""
    return HttpServer(
        uvicorn.Config(
            app,
            loop="uvloop",
            http="httptools",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=SLOW_READER_SECONDS,
        )
    )


def listening_socket(host: str, port: int) -> socket.socket:
    """Bind and listen.

    Raises:
        OSError: the address is in use, or does not belong to this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)
