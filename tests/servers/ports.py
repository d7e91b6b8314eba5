"""Free TCP ports of the loopback address."""

import atexit
import errno
import itertools
import socket
import threading

_BLOCK_PORTS = 400
_BLOCKS = range(10_000, 30_000, _BLOCK_PORTS)
"""Below all ports that a kernel chooses, for a client or for a server that asks for port 0."""


class OwnPorts:
    """A block of ports that no other process is given: whoever has bound the first of a block has all of it."""

    def __init__(self) -> None:
        self._first, self._held = next((first, held) for first in _BLOCKS if (held := _bound(first)))
        self._others = itertools.cycle(range(self._first + 1, self._first + _BLOCK_PORTS))
        self._choosing = threading.Lock()

    def free(self) -> int:
        """Return a port that nobody listens on, and that is not returned again before all others have been.

        Raises:
            RuntimeError: someone listens on each of them.
        """
        with self._choosing:
            for port in itertools.islice(self._others, _BLOCK_PORTS):
                if probe := _bound(port):
                    probe.close()
                    return port
        raise RuntimeError(f"all ports from {self._first} to {self._first + _BLOCK_PORTS - 1} are in use")

    def close(self) -> None:
        """Let others have the block."""
        self._held.close()


def free_port() -> int:
    """Return a port that nobody listens on, and that no other process is given as long as this one runs."""
    return _OWN.free()


def accepts_connections(port: int) -> bool:
    """Whether someone listens on the port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _bound(port: int) -> socket.socket | None:
    """Return a socket that has the port, None where another one has it."""
    probe = socket.socket()
    try:
        probe.bind(("127.0.0.1", port))
    except OSError as error:
        probe.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return probe


_OWN = OwnPorts()
atexit.register(_OWN.close)
