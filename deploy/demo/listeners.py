"""Check that the ports of the services are free before anything is started."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass

_CONNECT_TIMEOUT_SECONDS = 1.0


class PortsTaken(RuntimeError):
    """Other programs listen there; the message names each port's setting."""


@dataclass(frozen=True)
class Listener:
    """An address to listen on, and the setting that moves its port. The port is what the setting says, unchecked."""

    setting: str
    host: str
    port: str

    @property
    def address(self) -> str:
        """Host and port as they stand in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def check_ports_are_free(listeners: Sequence[Listener]) -> None:
    """Return when nobody listens at any of them.

    Raises:
        PortsTaken: somebody does.
    """
    taken = [one for one in listeners if _is_taken(one)]
    if taken:
        moved = " ".join(f"{one.setting}=…" for one in taken)
        addresses = ", ".join(one.address for one in taken)
        raise PortsTaken(f"another program listens at {addresses}; stop it, or choose other ports: {moved} make run")


def _is_taken(listener: Listener) -> bool:
    try:
        with socket.create_connection((listener.host, listener.port), _CONNECT_TIMEOUT_SECONDS):
            return True
    except OSError:
        return False
