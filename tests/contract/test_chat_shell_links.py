"""Many turns on one stream of `Connect`: what happens to one does not happen to the others, and replicas share them."""

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, ExitStack, aclosing
from dataclasses import replace
from typing import Any, cast

import grpc.aio
import pytest

from backend.chat_shell_client.ports.chat_shell import ChatShell
from chat_shell.foundation.services.message_bounds import SHORT_SHARE, MessageBounds
from chat_shell.servers.grpc.server import create_grpc_server
from protos.execution.v1 import chat_shell_pb2
from shared.errors import ChatShellUnavailable, UnknownModel
from shared.message_size import SHORT_MESSAGE_BYTES, STREAM_MESSAGE_BYTES
from shared.models.events import ExecutionEvent, ModelCallStarted, TextDelta
from shared.models.execution import ExecutionRequest
from shared.wire import event_to_proto
from tests.fakes.chat_shell_events import FINISHED
from tests.fakes.chat_shell_replicas import client_of, connect_method, serve_methods, serve_older
from tests.fakes.chat_shell_requests import full_request
from tests.fakes.chat_shell_runner import ScriptedRunner, saying, waiting_after
from tests.fakes.chat_shell_servers import MAX_BYTES, SERVICE_TOKEN, Shell, serve_grpc, shell_with
from tests.patience import PATIENCE_SECONDS, until
from tests.servers.ports import free_port

STARTED = ModelCallStarted(call=1)
Stream = AsyncGenerator[tuple[ExecutionEvent, ...]]


def stream_of(client: ChatShell, request: ExecutionRequest | None = None) -> Stream:
    return cast(Stream, client.execute(request or full_request()))


async def all_events(client: ChatShell, request: ExecutionRequest | None = None) -> list[ExecutionEvent]:
    async with aclosing(stream_of(client, request)) as stream:
        return [event async for batch in stream for event in batch]


def patient_shell(finish: asyncio.Event) -> Shell:
    async def patient(_request: ExecutionRequest) -> AsyncGenerator[ExecutionEvent]:
        yield STARTED
        await finish.wait()
        yield FINISHED

    return shell_with(ScriptedRunner(patient))


async def test_all_turns_go_over_one_stream_and_long_requests_beside_it() -> None:
    finish = asyncio.Event()
    shell = patient_shell(finish)
    long = full_request().model_copy(update={"system_prompt": "x" * SHORT_MESSAGE_BYTES})
    async with serve_grpc(shell) as server, client_of(server.port) as client, asyncio.TaskGroup() as group:
        turns = [group.create_task(all_events(client, request)) for request in (*[full_request()] * 20, long)]
        await until(lambda: shell.runner.live == 21)
        assert server.streams == 1
        finish.set()
        assert [await turn for turn in turns] == [[STARTED, FINISHED]] * 21
        assert (shell.bounds.held_bytes, shell.bounds.arriving) == (0, 0)


async def test_a_stream_that_dies_ends_its_turns_and_the_next_turn_has_another_one() -> None:
    shell, port = shell_with(ScriptedRunner(waiting_after(STARTED))), free_port()
    address = f"127.0.0.1:{port}"
    async with client_of(port) as client, AsyncExitStack() as stack:
        first = create_grpc_server(shell.turns, SERVICE_TOKEN, shell.bounds, address=address)
        await first.start()
        turns = [await stack.enter_async_context(aclosing(stream_of(client))) for _ in range(3)]
        assert [await anext(turn) for turn in turns] == [(STARTED,)] * 3
        await first.stop(0)
        for turn in turns:
            with pytest.raises(ChatShellUnavailable):
                await anext(turn)
        await shell.admission.wait_until_idle()
        second = create_grpc_server(shell.turns, SERVICE_TOKEN, shell.bounds, address=address)
        await second.start()
        assert await anext(await stack.enter_async_context(aclosing(stream_of(client)))) == (STARTED,)
        await second.stop(0)


async def test_a_replica_that_drains_gets_no_turns_and_ends_those_that_it_runs() -> None:
    finish = asyncio.Event()
    shells = [patient_shell(finish), patient_shell(finish)]
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(serve_grpc(shell)) for shell in shells]
        client = await stack.enter_async_context(client_of(*(server.port for server in servers)))
        running = await stack.enter_async_context(aclosing(stream_of(client)))
        assert await anext(running) == (STARTED,)
        (going,) = (place for place, shell in enumerate(shells) if shell.runner.live)
        await until(lambda: [server.streams for server in servers] == [1, 1])
        shells[going].admission.close()
        await servers[going].announce_drain()
        others = [await stack.enter_async_context(aclosing(stream_of(client))) for _ in range(4)]
        assert [await anext(turn) for turn in others] == [(STARTED,)] * 4
        assert [len(shells[place].runner.requests) for place in (going, 1 - going)] == [1, 4]
        finish.set()
        assert [event async for batch in running for event in batch] == [FINISHED]
        await until(lambda: not servers[going].streams)  # the client has ended the one over which it sends no turns
        await servers[going].stop(60)


async def test_turns_go_where_the_fewest_run() -> None:
    shells = [shell_with(ScriptedRunner(waiting_after(STARTED))) for _ in range(3)]
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(serve_grpc(shell)) for shell in shells]
        client = await stack.enter_async_context(client_of(*(server.port for server in servers)))
        for number in range(9):
            turn = await stack.enter_async_context(aclosing(stream_of(client)))
            await anext(turn)
            await until(lambda: all(server.streams == 1 for server in servers))
            assert sum(shell.runner.live for shell in shells) == number + 1
        assert [shell.runner.live for shell in shells] == [3, 3, 3]


async def test_a_replica_that_comes_is_found() -> None:
    shells = [shell_with(ScriptedRunner(waiting_after(STARTED))) for _ in range(2)]
    port = free_port()
    async with serve_grpc(shells[0]) as first, client_of(first.port, port) as client, AsyncExitStack() as stack:
        await anext(await stack.enter_async_context(aclosing(stream_of(client))))
        later = create_grpc_server(shells[1].turns, SERVICE_TOKEN, shells[1].bounds, address=f"127.0.0.1:{port}")
        await later.start()
        while not shells[1].runner.live:
            await anext(await stack.enter_async_context(aclosing(stream_of(client))))
            await asyncio.sleep(0.05)
        await later.stop(0)


async def test_replicas_of_the_release_before_get_their_share() -> None:
    newer, older = (shell_with(ScriptedRunner(waiting_after(STARTED))) for _ in range(2))
    async with (
        serve_grpc(newer) as server,
        serve_older(older) as port,
        client_of(server.port, port) as client,
        AsyncExitStack() as stack,
    ):
        while newer.runner.live < 2 or older.runner.live < 2:
            await anext(await stack.enter_async_context(aclosing(stream_of(client))))
            await asyncio.sleep(0.05)


async def test_a_replica_with_as_many_streams_as_it_may_have_takes_turns_by_calls() -> None:
    bounds = MessageBounds(MAX_BYTES, MAX_BYTES)
    shell = replace(shell_with(ScriptedRunner(saying(STARTED, FINISHED))), bounds=bounds)
    with ExitStack() as held:
        for _ in range(MAX_BYTES // SHORT_SHARE // STREAM_MESSAGE_BYTES):
            held.enter_context(bounds.hold_stream())
        async with serve_grpc(shell) as server, client_of(server.port) as client:
            assert await all_events(client) == [STARTED, FINISHED]
            assert server.streams == 0
    async with serve_grpc(shell) as server, client_of(server.port) as client:
        assert await all_events(client) == [STARTED, FINISHED]
        await until(lambda: server.streams == 1)


async def test_a_slow_reader_holds_up_nobody_else() -> None:
    piece = TextDelta(text="x" * 1_000)

    async def script(request: ExecutionRequest) -> AsyncGenerator[ExecutionEvent]:
        yield STARTED
        while request.request_id == "endless":
            yield piece
        yield FINISHED

    endless = full_request().model_copy(update={"request_id": "endless"})
    shell = shell_with(ScriptedRunner(script))
    async with serve_grpc(shell) as server, client_of(server.port) as client:
        async with aclosing(stream_of(client, endless)) as slow:
            await anext(slow)
            for _ in range(30):
                assert await all_events(client) == [STARTED, FINISHED]
            waiting_bytes = shell.runner.produced * len(piece.text)
            assert waiting_bytes < 2_000_000
            read_bytes = 0
            async for batch in slow:
                read_bytes += sum(len(event.text) for event in batch if isinstance(event, TextDelta))
                if read_bytes > 2 * waiting_bytes:
                    break
        await shell.admission.wait_until_idle()


FINISHED_BYTES = event_to_proto(FINISHED).SerializeToString()


async def test_what_is_no_event_ends_its_turn_alone() -> None:
    cancelled = asyncio.Event()

    async def connect(_unread: object, context: Any) -> None:
        await context.write(chat_shell_pb2.FromShell(hello=chat_shell_pb2.Hello(replica="one")))
        while (message := await context.read()) is not grpc.aio.EOF:
            for command in message.commands:
                is_first = command.turn == 1
                if command.HasField("start"):
                    event = b"\xff\xff" if is_first else FINISHED_BYTES
                    frame = chat_shell_pb2.TurnFrame(turn=command.turn, events=[event], is_last=not is_first)
                    await context.write(chat_shell_pb2.FromShell(frames=[frame]))
                elif is_first and command.HasField("cancel"):
                    cancelled.set()

    async with serve_methods(Connect=connect_method(connect)) as port, client_of(port) as client:
        with pytest.raises(ChatShellUnavailable, match="no event"):
            await all_events(client)
        assert await all_events(client) == [FINISHED]
        async with asyncio.timeout(PATIENCE_SECONDS):
            await cancelled.wait()


async def test_a_client_that_was_closed_reaches_nobody() -> None:
    shell = shell_with(ScriptedRunner(saying(STARTED, FINISHED)))
    async with serve_grpc(shell) as server:
        async with client_of(server.port) as client:
            assert await all_events(client) == [STARTED, FINISHED]
        with pytest.raises(ChatShellUnavailable):
            await all_events(client)


@pytest.fixture
def without_collections() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collections")
async def test_a_refused_turn_leaves_no_cycle_that_holds_its_request() -> None:
    async def refusing(_request: ExecutionRequest) -> AsyncGenerator[ExecutionEvent]:
        raise UnknownModel("No model of that name.")
        yield STARTED

    shell = shell_with(ScriptedRunner(refusing))

    async def refused(client: ChatShell) -> weakref.ref[ExecutionRequest]:
        request = full_request()
        with pytest.raises(UnknownModel):
            await all_events(client, request)
        return weakref.ref(request)

    async with serve_grpc(shell) as server, client_of(server.port) as client:
        sent = await refused(client)
        await shell.admission.wait_until_idle()
        received = weakref.ref(shell.runner.requests.pop())
        await asyncio.sleep(0)
        assert sent() is None
        assert received() is None


async def test_a_shell_of_the_release_before_runs_turns() -> None:
    shell = shell_with(ScriptedRunner(saying(STARTED, FINISHED)))
    async with serve_older(shell) as port, client_of(port) as client:
        assert await all_events(client) == [STARTED, FINISHED]
        async with aclosing(stream_of(client)) as stream:
            await anext(stream)
        await shell.admission.wait_until_idle()
    assert shell.runner.live == 0
