"""Handshakes at the gRPC port that do not end, and too many connections: given up, and others are served."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chat_shell.servers.grpc.server import create_grpc_server
from shared.certificates import CertificateFiles, Certificates
from shared.http_server.tls_listener import HandshakeLimits
from tests.fakes.certificates import HeardCertificates
from tests.fakes.chat_shell_events import FINISHED
from tests.fakes.chat_shell_runner import ScriptedRunner, saying
from tests.fakes.chat_shell_servers import SERVICE_TOKEN, shell_with
from tests.patience import PATIENCE_SECONDS
from tests.servers.certificates import Authority, MountedSecret

LONG_SECONDS = 10 * PATIENCE_SECONDS
BEGUN_TLS = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
WORDS = ("in clear", "TLS")


class Port:
    """The gRPC port of a chat_shell, in clear or with TLS."""

    def __init__(self, number: int, authority: Authority | None) -> None:
        self.number = number
        self._authority = authority

    async def connection(self, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.number)
        writer.write(sent)
        return reader, writer

    async def is_serving(self) -> bool:
        """Ask for the health over a connection that is tried again until there is one."""
        target = f"127.0.0.1:{self.number}"
        if self._authority is None:
            channel = grpc.aio.insecure_channel(target)
        else:
            channel = grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(self._authority.certificate))
        async with channel:
            check = cast(Any, health_pb2_grpc).HealthStub(channel).Check
            answer = await check(
                health_pb2.HealthCheckRequest(service=""), wait_for_ready=True, timeout=PATIENCE_SECONDS
            )
        return answer.status == health_pb2.HealthCheckResponse.SERVING


@asynccontextmanager
async def port_of(words: str, folder: Path, limits: HandshakeLimits) -> AsyncGenerator[Port]:
    authority = Authority() if words == "TLS" else None
    certificates = None
    if authority is not None:
        secret = MountedSecret(folder / "tls", authority.issue(), authority.certificate)
        certificates = Certificates(CertificateFiles(secret.certificate, secret.key), HeardCertificates())
    shell = shell_with(ScriptedRunner(saying(FINISHED)))
    server = create_grpc_server(
        shell.turns, SERVICE_TOKEN, shell.bounds, address="127.0.0.1:0", certificates=certificates, limits=limits
    )
    await server.start()
    try:
        yield Port(server.port, authority)
    finally:
        await server.stop(grace_seconds=0)


async def closed(reader: asyncio.StreamReader) -> None:
    """Return once the other side has closed; over a port in clear it has sent its settings before."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        with suppress(ConnectionResetError):
            await reader.read()


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("sent", [b"", BEGUN_TLS, b"PRI * HTTP/2.0\r\n"], ids=["silent", "half TLS", "half HTTP/2"])
async def test_a_handshake_that_does_not_end_is_given_up(words: str, sent: bytes, tmp_path: Path) -> None:
    async with port_of(words, tmp_path, HandshakeLimits(seconds=0.5)) as port:
        reader, writer = await port.connection(sent)
        assert await port.is_serving()
        await closed(reader)
        writer.close()


@pytest.mark.parametrize("words", WORDS)
async def test_too_many_connections_are_refused_until_one_ends(words: str, tmp_path: Path) -> None:
    async with port_of(words, tmp_path, HandshakeLimits(seconds=LONG_SECONDS, at_a_time=3)) as port:
        first = [await port.connection() for _ in range(3)]
        for _ in range(2):
            reader, writer = await port.connection()
            await closed(reader)
            writer.close()
        assert not any(reader.at_eof() for reader, _ in first)
        for _, writer in first:
            writer.close()
            await writer.wait_closed()
        assert await port.is_serving()
