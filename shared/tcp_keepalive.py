"""Connections whose other end is asked for signs of life: a machine that is gone is noticed within 15 s.

The kernel of the other end answers, even while its process thinks or stands still.
"""

import socket
from typing import Any

IDLE_SECONDS, INTERVAL_SECONDS, MOST_UNANSWERED = 5, 3, 3
_OPTIONS = (
    ("TCP_KEEPIDLE", IDLE_SECONDS),
    ("TCP_KEEPINTVL", INTERVAL_SECONDS),
    ("TCP_KEEPCNT", MOST_UNANSWERED),
)


def keep_asking(plain: socket.socket) -> None:
    """Have the system ask; a socket that is none of TCP is left as it is."""
    if plain.family not in (socket.AF_INET, socket.AF_INET6):
        return
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS:
        if hasattr(socket, name):
            plain.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def make_asking_socket(address: tuple[Any, ...]) -> socket.socket:
    """Make a socket for an address of `getaddrinfo`, as aiohttp's connector asks for one."""
    family, kind, protocol, *_ = address
    plain = socket.socket(family=family, type=kind, proto=protocol)
    keep_asking(plain)
    return plain
