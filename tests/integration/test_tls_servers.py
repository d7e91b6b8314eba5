"""Handshakes that do not end: every server that speaks TLS gives them up, and serves others meanwhile."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from backend.foundation.http.app import http_server
from chat_shell.servers.http.app import create_http_app
from shared.certificates import CertificateFiles, Certificates
from shared.http_server.server import build_server
from shared.http_server.tls_listener import TOO_MANY, TOO_SLOW, HandshakeLimits, TlsListener
from shared.listening import open_listening_socket
from tests.fakes.certificates import HeardCertificates
from tests.fakes.chat_shell_events import FINISHED
from tests.fakes.chat_shell_runner import ScriptedRunner, saying
from tests.fakes.chat_shell_servers import shell_with
from tests.fakes.http_api import FakeHouse
from tests.patience import PATIENCE_SECONDS
from tests.servers.certificates import Authority, MountedSecret

LIMITS = HandshakeLimits(seconds=0.5, at_a_time=3)
Address = tuple[str, int]


class Listener:
    """A server that runs, and what it said of connections that were not made."""

    def __init__(self, address: Address, heard: HeardCertificates, trusted: ssl.SSLContext) -> None:
        self.address = address
        self.heard = heard.heard
        self._trusted = trusted

    async def is_alive(self) -> bool:
        """Ask over a whole connection."""
        reader, writer = await asyncio.open_connection(*self.address, ssl=self._trusted)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer.startswith(b"HTTP/1.1 200 ")


@asynccontextmanager
async def listener_of(service: str, folder: Path) -> AsyncGenerator[Listener]:
    authority, heard = Authority(), HeardCertificates()
    secret = MountedSecret(folder / "tls", authority.issue(), authority.certificate)
    certificates = Certificates(CertificateFiles(secret.certificate, secret.key, secret.authority), heard)
    tls = TlsListener(certificates.for_server(), heard, LIMITS)
    shell = shell_with(ScriptedRunner(saying(FINISHED)))
    if service == "backend":
        server = http_server(FakeHouse().app(), tls=tls)
    else:
        server = build_server(create_http_app(shell.turns, "token", shell.bounds), tls=tls)
    listening = open_listening_socket("127.0.0.1", 0)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listening]))
        trusted = ssl.create_default_context(cadata=authority.certificate.decode())
        yield Listener(listening.getsockname(), heard, trusted)
        server.should_exit = True


async def closed(reader: asyncio.StreamReader) -> None:
    """Return once the other side has closed."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        with suppress(ConnectionResetError):
            assert await reader.read() == b""


@pytest.mark.parametrize("service", ["backend", "chat_shell"])
@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"], ids=["silent", "half"])
async def test_a_handshake_that_does_not_end_is_given_up(service: str, sent: bytes, tmp_path: Path) -> None:
    async with listener_of(service, tmp_path) as listener:
        reader, writer = await asyncio.open_connection(*listener.address)
        writer.write(sent)
        assert await listener.is_alive()
        await closed(reader)
        writer.close()
        assert listener.heard == [f"server, by us: {TOO_SLOW}"]
        assert await listener.is_alive()


@pytest.mark.parametrize("service", ["backend", "chat_shell"])
async def test_of_too_many_handshakes_the_oldest_is_given_up(service: str, tmp_path: Path) -> None:
    async with listener_of(service, tmp_path) as listener:
        opened = [await asyncio.open_connection(*listener.address) for _ in range(LIMITS.at_a_time + 2)]
        assert await listener.is_alive()
        for reader, writer in opened:
            await closed(reader)
            writer.close()
        assert listener.heard.count(f"server, by us: {TOO_MANY}") >= 2


async def test_an_open_connection_is_no_handshake(tmp_path: Path) -> None:
    async with listener_of("backend", tmp_path) as listener:
        for _ in range(LIMITS.at_a_time + 2):
            assert await listener.is_alive()
        assert listener.heard == []
