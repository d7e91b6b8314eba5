"""Replicas of chat_shell behind one client over gRPC; some of them are of the release before."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from backend.chat_shell_client.failover import FailoverChatShell
from backend.chat_shell_client.grpc_client import GrpcChatShell
from backend.chat_shell_client.ports.chat_shell import ChatShell
from chat_shell.servers.grpc.arrival import Arrivals
from chat_shell.servers.grpc.handlers import SERVICE_NAME, ChatShellHandlers
from protos.execution.v1 import chat_shell_pb2
from shared.clock import SystemClock
from tests.fakes.chat_shell_servers import MAX_BYTES, SERVICE_TOKEN, Shell
from tests.fakes.supervision import make_supervisor

ToShell, FromShell = chat_shell_pb2.ToShell, chat_shell_pb2.FromShell
Connect = Callable[[Any, Any], Any]


@asynccontextmanager
async def client_of(*ports: int, token: str = SERVICE_TOKEN) -> AsyncGenerator[ChatShell]:
    """Connect to replicas that the name of a service stands for."""
    target = "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports)
    client = GrpcChatShell(target, token, SystemClock(), MAX_BYTES, make_supervisor())
    try:
        yield FailoverChatShell(client)
    finally:
        await client.close()


@asynccontextmanager
async def serve_methods(**methods: Any) -> AsyncGenerator[int]:
    """Serve methods of chat_shell's service, each a handler of gRPC, on a free port."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE_NAME, methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


def connect_method(serve: Connect) -> Any:
    """Return the handler of `Connect`."""
    streams: Any = grpc.stream_stream_rpc_method_handler
    return streams(serve, request_deserializer=ToShell.FromString, response_serializer=FromShell.SerializeToString)


class _WithoutConnect(grpc.GenericRpcHandler):
    def __init__(self, handlers: ChatShellHandlers) -> None:
        self._known: Any = handlers.generic_handler()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        is_newer = str(handler_call_details.method).endswith("/Connect")
        return None if is_newer else self._known.service(handler_call_details)


@asynccontextmanager
async def serve_older(shell: Shell) -> AsyncGenerator[int]:
    """Open the gRPC server of the release before, which has no `Connect`, on a free port."""
    server = grpc.aio.server(interceptors=(Arrivals(SERVICE_NAME, SERVICE_TOKEN, shell.bounds),))
    server.add_generic_rpc_handlers((_WithoutConnect(ChatShellHandlers(shell.turns, shell.bounds)),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)
