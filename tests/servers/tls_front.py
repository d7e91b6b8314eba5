"""TLS before a server of the tests that has none, as its own TLS would begin."""

import socket
import socketserver
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

from tests.servers.certificates import MountedSecret

READ_BYTES = 1 << 16
_ASKS_FOR_TLS_BYTES = 8
"""PostgreSQL's SSLRequest, which is answered with an S before TLS begins."""


@contextmanager
def tls_before(target: int, shown: MountedSecret, *, asks_first: bool) -> Generator[int]:
    """Lend the port of a TLS server before a plain one; `asks_first` is how clients of PostgreSQL begin."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate, shown.key)

    class Passing(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                if asks_first:
                    self.request.recv(_ASKS_FOR_TLS_BYTES)
                    self.request.sendall(b"S")
                with (
                    context.wrap_socket(self.request, server_side=True) as here,
                    socket.create_connection(("127.0.0.1", target)) as there,
                ):
                    back = threading.Thread(target=_pass, args=(there, here), daemon=True)
                    back.start()
                    _pass(here, there)
                    back.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Passing) as server:
        server.daemon_threads = True
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            serving.join()


def _pass(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(READ_BYTES):
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
