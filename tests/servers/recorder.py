"""TCP proxies that keep every byte which passes them, as somebody on the wire could."""

import socket
import socketserver
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

READ_BYTES = 1 << 16


class Recorder:
    """Opens a proxy before each port that it is asked for."""

    def __init__(self) -> None:
        self._seen = bytearray()
        self._lock = threading.Lock()
        self._servers: list[socketserver.ThreadingTCPServer] = []

    def before(self, target: int) -> int:
        """Return the port of a proxy before a port."""
        record = self._record

        class Passing(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with suppress(OSError), socket.create_connection(("127.0.0.1", target)) as there:
                    back = threading.Thread(target=_pass, args=(there, self.request, record), daemon=True)
                    back.start()
                    _pass(self.request, there, record)
                    back.join()

        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Passing)
        server.daemon_threads = True
        self._servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server.server_address[1]

    @property
    def seen(self) -> bytes:
        """All bytes so far, of all connections and directions."""
        with self._lock:
            return bytes(self._seen)

    def close(self) -> None:
        """Take no further connections."""
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def _record(self, piece: bytes) -> None:
        with self._lock:
            self._seen += piece


@contextmanager
def recording() -> Generator[Recorder]:
    """Lend a recorder."""
    recorder = Recorder()
    try:
        yield recorder
    finally:
        recorder.close()


def _pass(source: socket.socket, target: socket.socket, record: Callable[[bytes], None]) -> None:
    with suppress(OSError):
        while piece := source.recv(READ_BYTES):
            record(piece)
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
