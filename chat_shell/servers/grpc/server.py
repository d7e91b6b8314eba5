"""The gRPC server: the service, health checks and reflection on one port."""

from typing import Any, Protocol, cast

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from chat_shell.foundation.services.message_bounds import MessageBounds
from chat_shell.servers.grpc.arrival import Arrivals
from chat_shell.servers.grpc.handlers import SERVICE_NAME, ChatShellHandlers
from chat_shell.turns.services.turn_service import TurnService
from shared.certificates import Certificates, ReadCertificates
from shared.http_server.tls_listener import DEFAULT_LIMITS, HandshakeLimits
from shared.wire.keepalive import options_of_server

# Windows of fixed size: otherwise gRPC takes in the bytes of calls that may not arrive yet without a bound.
WINDOW_OPTIONS = (("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65_536))


class HealthServicer(Protocol):
    """The asyncio servicer of grpcio-health-checking, which has no types."""

    async def set(self, service: str, status: int) -> None:
        """Set the health status of a service."""
        ...

    async def enter_graceful_shutdown(self) -> None:
        """Report NOT_SERVING for all services from now on."""
        ...


class GrpcServer:
    """A server that is bound to its port; start it inside the event loop in which it will serve."""

    def __init__(
        self, server: grpc.aio.Server, health_servicer: HealthServicer, handlers: ChatShellHandlers, port: int
    ) -> None:
        self._server = server
        self._health = health_servicer
        self._handlers = handlers
        self.port = port

    @property
    def streams(self) -> int:
        """How many streams for many turns are open."""
        return self._handlers.streams

    async def start(self) -> None:
        """Start serving, and report SERVING."""
        await self._health.set(SERVICE_NAME, health_pb2.HealthCheckResponse.SERVING)
        await self._server.start()

    async def announce_drain(self) -> None:
        """Report NOT_SERVING from now on, and tell callers that are connected; calls are still answered."""
        await self._health.enter_graceful_shutdown()
        self._handlers.send_callers_away()

    async def stop(self, grace_seconds: float) -> None:
        """Refuse new connections, give running calls `grace_seconds` to end, then cancel them."""
        await self._server.stop(grace_seconds)


def create_grpc_server(
    turns: TurnService,
    service_token: str,
    bounds: MessageBounds,
    *,
    address: str,
    certificates: Certificates | None = None,
    limits: HandshakeLimits = DEFAULT_LIMITS,
) -> GrpcServer:
    """Build the server and bind it; port 0 chooses a free port. With certificates it speaks TLS, and nothing else.

    Raises:
        RuntimeError: the address cannot be bound.
    """
    server = grpc.aio.server(
        interceptors=(Arrivals(SERVICE_NAME, service_token, bounds),),
        options=(
            *options_of_server(),
            *WINDOW_OPTIONS,
            *_connection_options(limits),
            ("grpc.max_receive_message_length", bounds.max_message_bytes),
            ("grpc.max_send_message_length", bounds.max_message_bytes),
            ("grpc.so_reuseport", 0),
        ),
    )
    handlers = ChatShellHandlers(turns, bounds)
    server.add_generic_rpc_handlers((handlers.generic_handler(),))
    health_servicer: HealthServicer = cast(Any, health).aio.HealthServicer()
    cast(Any, health_pb2_grpc).add_HealthServicer_to_server(health_servicer, server)
    reflection.enable_server_reflection((SERVICE_NAME, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    if certificates is None:
        return GrpcServer(server, health_servicer, handlers, server.add_insecure_port(address))
    port = server.add_secure_port(address, _credentials(certificates))
    return GrpcServer(server, health_servicer, handlers, port)


def _connection_options(limits: HandshakeLimits) -> tuple[tuple[str, int], ...]:
    """Return the bounds as gRPC knows them; it counts whole connections too, of which a backend needs one or two."""
    return (
        ("grpc.server_handshake_timeout_ms", int(limits.seconds * 1000)),
        ("grpc.max_allowed_incoming_connections", limits.at_a_time),
    )


def _credentials(certificates: Certificates) -> grpc.ServerCredentials:
    """Make credentials that gRPC asks for anew, from a thread of its own, at each connection."""

    def configuration() -> grpc.ServerCertificateConfiguration:
        return _configuration(certificates.current())

    return grpc.dynamic_ssl_server_credentials(
        configuration(), configuration, require_client_authentication=certificates.files.are_mutual
    )


def _configuration(read: ReadCertificates) -> grpc.ServerCertificateConfiguration:
    if read.key is None or read.certificate is None:
        raise ValueError("there is no certificate to serve with")
    return grpc.ssl_server_certificate_configuration([(read.key, read.certificate)], read.authority)
