"""Accepts TLS connections of a socket; a client that does not finish its handshake keeps no place for long.

asyncio's own servers let a handshake take a minute, and as many wait as there are file descriptors.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from shared.certificates import CertificateObserver, Certificates

PAUSE_SECONDS = 1.0
"""How long nothing is accepted after the system has refused to: mostly, it lacks file descriptors."""

TOO_SLOW = "the handshake took too long"
TOO_MANY = "too many handshakes at a time, and this was the oldest"


@dataclass(frozen=True)
class HandshakeLimits:
    """How long a handshake may take, and how many may be under way; beyond these the oldest one is given up."""

    seconds: float = 10.0
    at_a_time: int = 1024


DEFAULT_LIMITS = HandshakeLimits()


class TlsListener:
    """Makes connections with `tls`, and tells the observer of those that were not made in time."""

    def __init__(self, tls: ssl.SSLContext, observer: CertificateObserver, limits: HandshakeLimits = DEFAULT_LIMITS):
        self._tls = tls
        self._observer = observer
        self._limits = limits
        self._waiting: dict[asyncio.Task[None], None] = {}

    async def accept(self, listening: socket.socket, make_protocol: Callable[[], asyncio.Protocol]) -> None:
        """Accept connections until the task is cancelled; those that are made then stay."""
        listening.setblocking(False)
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    connection, _ = await loop.sock_accept(listening)
                except OSError:
                    await asyncio.sleep(PAUSE_SECONDS)
                    continue
                task = group.create_task(self._shake(connection, make_protocol))
                self._waiting[task] = None
                task.add_done_callback(self._forget)
                self._give_up_oldest()

    async def _shake(self, connection: socket.socket, make_protocol: Callable[[], asyncio.Protocol]) -> None:
        loop = asyncio.get_running_loop()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            async with asyncio.timeout(self._limits.seconds):
                await loop.connect_accepted_socket(make_protocol, connection, ssl=self._tls)
        except TimeoutError:
            self._observer.connection_refused(TOO_SLOW, by_us=True, is_server=True)
        except (OSError, ValueError):
            """The context has told of a handshake that failed; a client that left needs no word."""

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._waiting.pop(task, None)

    def _give_up_oldest(self) -> None:
        if len(self._waiting) > self._limits.at_a_time:
            oldest = next(iter(self._waiting))
            self._forget(oldest)
            oldest.cancel()
            self._observer.connection_refused(TOO_MANY, by_us=True, is_server=True)


def tls_listener(certificates: Certificates) -> TlsListener | None:
    """Return the listener with the certificates of each moment; none where there is nothing to show to clients."""
    return TlsListener(certificates.for_server(), certificates.observer) if certificates.files.can_serve else None
