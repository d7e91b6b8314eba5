"""Free TCP ports of the loopback address."""

import socket


def free_port() -> int:
    """Return a port that nobody listens on; the kernel does not hand it out again soon."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def accepts_connections(port: int) -> bool:
    """Whether someone listens on the port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
