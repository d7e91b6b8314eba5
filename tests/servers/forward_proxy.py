"""A proxy on the way out (RFC 9110, section 9.3.6), and the https servers behind it, for which it ends TLS itself."""

import base64
import socket
import socketserver
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.servers.certificates import MountedSecret
from tests.servers.recorder import READ_BYTES

USER, WORD = "ballast", "word-of-the-proxy"


@dataclass
class ForwardProxy:
    """Which ports of this machine stand for which hosts, and what it was asked for."""

    port: int = 0
    hosts: dict[str, tuple[MountedSecret, int]] = field(default_factory=dict[str, tuple[MountedSecret, int]])
    asked: list[str] = field(default_factory=list[str])

    @property
    def address(self) -> str:
        """The address of the proxy, with user and password."""
        return f"http://{USER}:{WORD}@127.0.0.1:{self.port}"

    def serve(self, client: socket.socket) -> None:
        """Answer one CONNECT."""
        with client.makefile("rb") as lines:
            _, target, _ = lines.readline().decode().split(" ")
            headers = [line.decode().strip().lower() for line in iter(lines.readline, b"\r\n")]
        self.asked.append(target)
        known = base64.b64encode(f"{USER}:{WORD}".encode()).decode().lower()
        if f"proxy-authorization: basic {known}" not in headers:
            client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
            return
        secret, port = self.hosts[target.removesuffix(":443")]
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(secret.certificate, secret.key)
        with (
            context.wrap_socket(client, server_side=True) as inside,
            socket.create_connection(("127.0.0.1", port)) as there,
        ):
            threading.Thread(target=_pass, args=(there, inside), daemon=True).start()
            _pass(inside, there)


def _pass(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(READ_BYTES):
            target.sendall(piece)


@contextmanager
def forwarding() -> Generator[ForwardProxy]:
    """Lend a proxy."""
    proxy = ForwardProxy()

    class Asked(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                proxy.serve(self.request)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Asked) as server:
        server.daemon_threads, server.block_on_close = True, False
        proxy.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield proxy
        server.shutdown()
