"""The channel to chat_shell, made anew when the certificates of TLS have changed, or no replica takes its calls."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import grpc
import grpc.aio

from protos.execution.v1 import chat_shell_pb2
from protos.execution.v1.chat_shell_pb2_grpc import ChatShellStub
from shared.certificates import Certificates, ReadCertificates

EXECUTE = f"/{chat_shell_pb2.DESCRIPTOR.services_by_name['ChatShell'].full_name}/Execute"

_NOT_CONNECTED = ("failed to connect to all addresses", "connections to all backends failing")
_CLOSED = "Socket closed"
"""What a client hears of a server that does not take its certificate."""


RECONNECT_SECONDS = 1.5
"""Longer than the longest pause between attempts to connect: a restarted replica is found before a call fails."""

REMADE_AFTER_SECONDS = 1.0
"""How old a channel is at least when it is replaced because nobody takes its calls."""


class LentChannel:
    """A channel and what calls over it; one that has been replaced is closed when its last call has ended."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel
        self.stub = ChatShellStub(channel)
        self.execute = channel.unary_stream(EXECUTE, request_serializer=bytes, response_deserializer=bytes)
        self.calls = 0
        self.is_left = False
        self._made_at = asyncio.get_running_loop().time()

    @property
    def is_stuck(self) -> bool:
        """Whether its replica has refused a call because it goes, or no replica has taken its calls for a while.

        A replica that drains keeps its connection while turns run over it, and says that it takes no more. Where all
        replicas are behind one address, gRPC waits for this one, and only another channel reaches another one.
        """
        if self.is_left:
            return True
        is_refused = self.channel.get_state() is grpc.ChannelConnectivity.TRANSIENT_FAILURE
        return is_refused and asyncio.get_running_loop().time() - self._made_at >= REMADE_AFTER_SECONDS


class CurrentChannel:
    """Lends the connection of this moment. Build it inside the event loop that will use it.

    gRPC's Python library gives the credentials of a client to a channel for good. Calls that run keep their channel.
    """

    def __init__(self, target: str, options: tuple[tuple[str, str | int], ...], certificates: Certificates | None):
        self._target = target
        self._options = options
        self._certificates = certificates
        self._made_with = certificates.current() if certificates is not None else None
        self._current = self._make()
        self._open = {self._current}

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[LentChannel]:
        """Lend a connection once it stands, or after `RECONNECT_SECONDS`; the call then reports the missing one."""
        connection = await self.current()
        connection.calls += 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(RECONNECT_SECONDS):
                    await connection.channel.channel_ready()
            yield connection
        finally:
            connection.calls -= 1
            if connection is not self._current and not connection.calls:
                await self._close(connection)

    async def current(self) -> LentChannel:
        """Return what new calls go over."""
        certificates = self._certificates.current() if self._certificates is not None else None
        if certificates is not self._made_with or self._current.is_stuck:
            before, self._made_with = self._current, certificates
            self._current = self._make()
            self._open.add(self._current)
            if not before.calls:
                await self._close(before)
        return self._current

    def tell_refusal(self, error: grpc.aio.AioRpcError) -> None:
        """Tell of a call that failed because TLS did: gRPC says so in its details alone."""
        details = error.details() or ""
        by_us = "handshake failed" in details or "check failed" in details
        if self._certificates is not None and (by_us or _CLOSED in details) and details.startswith(_NOT_CONNECTED):
            self._certificates.observer.connection_refused(details, by_us=by_us, is_server=False)

    async def close(self) -> None:
        """Cancel running calls and close all channels."""
        for connection in tuple(self._open):
            await self._close(connection)

    async def _close(self, connection: LentChannel) -> None:
        self._open.discard(connection)
        await connection.channel.close()

    def _make(self) -> LentChannel:
        if self._made_with is None:
            return LentChannel(grpc.aio.insecure_channel(self._target, options=self._options))
        return LentChannel(grpc.aio.secure_channel(self._target, _credentials(self._made_with), options=self._options))


def _credentials(read: ReadCertificates) -> grpc.ChannelCredentials:
    """Make credentials; without an authority of the operator's, those of the system are trusted, as everywhere."""
    return grpc.ssl_channel_credentials(read.authority or _authorities_of_system(), read.key, read.certificate)


def _authorities_of_system() -> bytes | None:
    """Return the file that `SSL_CERT_FILE` names, or that of the system; None leaves it to those that gRPC brings."""
    path: str | None = ssl.get_default_verify_paths().cafile
    return Path(path).read_bytes() if path else None
