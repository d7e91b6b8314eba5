"""Both servers of chat_shell on loopback, with the client that goes through each."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import uvicorn
from fastapi import FastAPI

from backend.chat_shell_client.chosen import connect_chat_shell
from backend.chat_shell_client.ports.chat_shell import ChatShell
from chat_shell.foundation.services.admission import Admission
from chat_shell.foundation.services.message_bounds import MessageBounds
from chat_shell.servers.grpc.server import GrpcServer, create_grpc_server
from chat_shell.servers.http.app import create_http_app
from chat_shell.turns.services.turn_service import ModelLister, TurnService
from shared.clock import Clock, SystemClock
from shared.models.events import ModelCard
from tests.fakes.certificates import no_certificates
from tests.fakes.chat_shell_runner import CARDS, ScriptedRunner, ScriptedTool
from tests.fakes.supervision import make_supervisor

SERVICE_TOKEN = "s3rvice-token"
MAX_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class Shell:
    """What stands behind the servers."""

    runner: ScriptedRunner
    tool: ScriptedTool
    admission: Admission
    turns: TurnService
    bounds: MessageBounds = field(default_factory=lambda: MessageBounds(MAX_BYTES, 16 * MAX_BYTES))


def list_cards() -> tuple[ModelCard, ...]:
    """Offer two models."""
    return CARDS


def shell_with(
    runner: ScriptedRunner,
    models: ModelLister = list_cards,
    clock: Clock | None = None,
    tool: ScriptedTool | None = None,
) -> Shell:
    """Put a runner behind servers that enforce deadlines at once."""
    admission, tool = Admission(), tool or ScriptedTool()
    turns = TurnService(runner, tool, models, clock or SystemClock(), admission, deadline_grace_seconds=0.0)
    return Shell(runner, tool, admission, turns)


@asynccontextmanager
async def serve_grpc(shell: Shell, token: str = SERVICE_TOKEN) -> AsyncGenerator[GrpcServer]:
    """Open the gRPC server on a free port."""
    server = create_grpc_server(shell.turns, token, shell.bounds, address="127.0.0.1:0")
    await server.start()
    try:
        yield server
    finally:
        await server.stop(grace_seconds=0)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Return when nothing of it is open: uvicorn stops waiting after a second, and closes nothing then."""
        await super().shutdown(sockets)
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # transports close their sockets in the next round of the event loop


@asynccontextmanager
async def served(app: FastAPI) -> AsyncGenerator[str]:
    """Serve an app on a free port and yield its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, lifespan="off", log_config=None, ws="none", timeout_graceful_shutdown=1)
    server = _Server(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve([listener]))
        await server.ready.wait()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True


@asynccontextmanager
async def serve_http(shell: Shell, token: str = SERVICE_TOKEN, heartbeat_seconds: float = 15.0) -> AsyncGenerator[str]:
    """Open the HTTP server on a free port and yield its address."""
    app = create_http_app(shell.turns, token, shell.bounds, heartbeat_seconds=heartbeat_seconds)
    async with served(app) as address:
        yield address


@asynccontextmanager
async def server_address(transport: str, shell: Shell) -> AsyncGenerator[str]:
    """Open the server of a transport and yield the address that a client is given."""
    if transport == "grpc":
        async with serve_grpc(shell) as server:
            yield f"grpc://127.0.0.1:{server.port}"
    else:
        async with serve_http(shell) as address:
            yield address


@asynccontextmanager
async def connected(address: str, token: str = SERVICE_TOKEN) -> AsyncGenerator[ChatShell]:
    """Connect a client and close it at the end."""
    client = connect_chat_shell(
        address,
        token,
        clock=SystemClock(),
        max_message_bytes=MAX_BYTES,
        certificates=no_certificates(),
        supervisor=make_supervisor(),
    )
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def pair(transport: str, shell: Shell) -> AsyncGenerator[ChatShell]:
    """Open a server and connect to it."""
    async with server_address(transport, shell) as address, connected(address) as client:
        yield client
