"""Requests at chat_shell's servers that come too slowly, or for whose bytes there is no room."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

import grpc.aio
import pytest

from backend.chat_shell_client.grpc_client import error_of_call
from chat_shell.foundation.services.message_bounds import MessageBounds
from chat_shell.servers.grpc.handlers import SERVICE_NAME
from chat_shell.servers.http.app import create_http_app
from shared.errors import ChatShellUnavailable, InternalError
from shared.http_server.connection import ConnectionRules
from shared.http_server.server import build_server
from shared.http_server.timing import ReadLimits
from shared.listening import open_listening_socket
from shared.message_size import MESSAGE_BYTES_KEY, SHORT_MESSAGE_BYTES
from tests.fakes.chat_shell_requests import full_request
from tests.fakes.chat_shell_runner import ScriptedRunner, saying_all
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.chat_shell_servers import SERVICE_TOKEN, Shell, connected, pair, serve_grpc, shell_with
from tests.patience import PATIENCE_SECONDS, until

LIMITS = ReadLimits(seconds=0.3, bytes_a_second=1000, head_bytes=4096)
HEAD = b"POST /v1/responses HTTP/1.1\r\nHost: x\r\n"
BODY = HEAD + f"Authorization: Bearer {SERVICE_TOKEN}\r\nContent-Length: 9999\r\n\r\n{{".encode()
TOKEN = (("authorization", f"Bearer {SERVICE_TOKEN}"),)
EXECUTE = f"/{SERVICE_NAME}/Execute"


def narrow(max_messages_bytes: int) -> Shell:
    shell = shell_with(ScriptedRunner(saying_all(answer("Hello."))))
    return replace(shell, bounds=MessageBounds(max_messages_bytes, max_messages_bytes))


@pytest.fixture
async def address() -> AsyncIterator[tuple[str, int]]:
    shell = shell_with(ScriptedRunner(saying_all(answer("Hello."))))
    server = build_server(create_http_app(shell.turns, SERVICE_TOKEN, shell.bounds), ConnectionRules(LIMITS))
    listener = open_listening_socket("127.0.0.1", 0)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener]))
        yield listener.getsockname()
        server.should_exit = True


@pytest.mark.parametrize(
    ("sent", "status"),
    [(HEAD, b"408"), (BODY, b"408"), (HEAD + b"X: " + 5000 * b"x", b"431"), (b"", b""), (b"no HTTP\r\n\r\n", b"400")],
    ids=["half of the headers", "half of the body", "headers without end", "nothing", "no HTTP"],
)
async def test_half_a_request_ends(address: tuple[str, int], sent: bytes, status: bytes) -> None:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(sent)
    async with asyncio.timeout(PATIENCE_SECONDS):
        told = await reader.read()
    assert told[9:12] == status
    writer.close()


@pytest.mark.parametrize("transport", ["grpc", "http"])
async def test_a_request_without_room_is_refused_as_overload_and_the_room_comes_back(transport: str) -> None:
    shell = narrow(1_000_000)
    async with pair(transport, shell) as client, asyncio.timeout(PATIENCE_SECONDS):
        with shell.bounds.hold() as others:
            others.grow(999_999)
            with pytest.raises(ChatShellUnavailable):
                await anext(client.execute(full_request()))
        assert [batch async for batch in client.execute(full_request())]
    assert (shell.bounds.held_bytes, shell.bounds.arriving) == (0, 0)


def call_of(channel: grpc.aio.Channel, metadata: tuple[tuple[str, str], ...]) -> Any:
    """Begin a call whose message does not come: on the wire a stream of none as yet."""
    return cast(Any, channel).stream_stream(EXECUTE)(metadata=metadata, timeout=30)


async def test_a_message_is_not_read_before_it_has_a_place() -> None:
    """The second call waits where one message alone has room, and goes on when the first gives up."""
    shell = narrow(1_000_000)
    async with serve_grpc(shell) as server, grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        half = call_of(channel, TOKEN)
        await half.wait_for_connection()
        await until(lambda: bool(shell.bounds.arriving))
        listing = cast(Any, channel).unary_unary(f"/{SERVICE_NAME}/ListModels")
        async with asyncio.timeout(PATIENCE_SECONDS):
            waiting = asyncio.ensure_future(listing(b"", metadata=TOKEN))
            await asyncio.wait([waiting], timeout=0.2)
            assert not waiting.done()
            half.cancel()
            assert await waiting
    assert shell.bounds.arriving == 0


async def test_short_messages_do_not_wait_for_long_ones_that_do_not_come() -> None:
    shell = narrow(1_000_000)
    async with serve_grpc(shell) as server, grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        half = call_of(channel, TOKEN)
        await half.wait_for_connection()
        await until(lambda: bool(shell.bounds.arriving))
        async with connected(f"grpc://127.0.0.1:{server.port}") as client, asyncio.timeout(PATIENCE_SECONDS):
            assert await client.models()
            assert [batch async for batch in client.execute(full_request())]
        assert shell.bounds.arriving == 1
        half.cancel()


async def test_short_messages_that_hang_give_their_places_back_soon() -> None:
    bounds = MessageBounds(8 * SHORT_MESSAGE_BYTES, 8 * SHORT_MESSAGE_BYTES, short_reading_seconds=0.5)
    announced = (*TOKEN, (MESSAGE_BYTES_KEY, "5"))
    async with (
        serve_grpc(replace(narrow(1), bounds=bounds)) as server,
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        hanging = call_of(channel, announced)
        await hanging.wait_for_connection()
        await until(lambda: bool(bounds.arriving))
        began_at = asyncio.get_running_loop().time()
        listing = cast(Any, channel).unary_unary(f"/{SERVICE_NAME}/ListModels")
        assert await listing(b"", metadata=announced, timeout=bounds.reading_seconds / 2)
        waited_seconds = asyncio.get_running_loop().time() - began_at
        assert waited_seconds > bounds.short_reading_seconds / 2, "there was another place"
        async with asyncio.timeout(bounds.reading_seconds / 2):
            await until(lambda: not bounds.arriving)
        hanging.cancel()


async def test_a_long_message_that_is_announced_as_short_is_refused() -> None:
    shell = narrow(1_000_000)
    async with serve_grpc(shell) as server, grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        listing = cast(Any, channel).unary_unary(f"/{SERVICE_NAME}/ListModels")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await listing(bytes(SHORT_MESSAGE_BYTES + 1), metadata=(*TOKEN, (MESSAGE_BYTES_KEY, "5")))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_call_without_the_token_is_refused_before_its_message_comes() -> None:
    shell = narrow(1_000_000)
    async with serve_grpc(shell) as server, grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = call_of(channel, ())
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call.read()
    assert isinstance(error_of_call(refused.value, begun=False), InternalError)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
