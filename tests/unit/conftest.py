"""Unit tests reach nothing outside their process."""

import socket
import sys
from collections.abc import Iterator

import pytest

_NETWORK_EVENTS = frozenset({"socket.bind", "socket.connect", "socket.getaddrinfo", "socket.sendto"})


class _Border:
    def __init__(self) -> None:
        self.closed = False

    def audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.closed or event not in _NETWORK_EVENTS:
            return
        family = getattr(arguments[0], "family", socket.AF_INET)
        if family != socket.AF_UNIX:
            raise RuntimeError(f"a unit test opened the network: {event} {arguments[1:]}")


_border = _Border()
sys.addaudithook(_border.audit)  # a hook cannot be removed, hence the switch


@pytest.fixture(autouse=True)
def closed_sockets() -> Iterator[None]:
    """Make every use of the network an error while a unit test runs."""
    _border.closed = True
    yield
    _border.closed = False
