"""What only the gRPC server has: statuses, health, reflection, deadlines of calls."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from structlog.testing import capture_logs

from protos.execution.v1 import chat_shell_pb2, events_pb2, request_pb2
from protos.execution.v1.chat_shell_pb2_grpc import ChatShellStub
from shared.errors import Draining
from shared.models.events import ErrorReport, FunctionCallDelta, ModelCallStarted, ModelCard, TextDelta
from shared.wire import report_from_proto, request_to_proto
from tests.fakes.chat_shell_events import FINISHED
from tests.fakes.chat_shell_requests import full_request
from tests.fakes.chat_shell_runner import ScriptedRunner, saying, waiting_after
from tests.fakes.chat_shell_servers import SERVICE_TOKEN, Shell, serve_grpc, shell_with

AUTHORIZED = (("authorization", f"Bearer {SERVICE_TOKEN}"),)
HEALTH = health_pb2.HealthCheckResponse


@asynccontextmanager
async def channel_to(shell: Shell) -> AsyncGenerator[grpc.aio.Channel]:
    async with serve_grpc(shell) as server, grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        yield channel


async def refusal_of(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        async for _ in call:
            pass
    return raised.value


def report_in(error: grpc.aio.AioRpcError) -> ErrorReport:
    trailers = dict(error.trailing_metadata() or ())
    return report_from_proto(events_pb2.ErrorReport.FromString(cast(bytes, trailers["ballast-error-bin"])))


@pytest.mark.parametrize(
    "metadata",
    [(), (("authorization", SERVICE_TOKEN),), (("authorization", f"Bearer {SERVICE_TOKEN}x"),)],
)
async def test_a_call_without_the_service_token_is_unauthenticated(metadata: tuple[tuple[str, str], ...]):
    shell = shell_with(ScriptedRunner(saying(FINISHED)))
    async with channel_to(shell) as channel:
        stub = ChatShellStub(channel)
        error = await refusal_of(stub.Execute(request_to_proto(full_request()), metadata=metadata))
        with pytest.raises(grpc.aio.AioRpcError) as listing:
            await stub.ListModels(chat_shell_pb2.ListModelsRequest(), metadata=metadata)
    assert error.code() is listing.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert not shell.runner.requests


async def test_a_caller_that_does_not_know_pieces_of_calls_gets_none():
    piece = FunctionCallDelta(call_id="c", name="weather", arguments="{")
    async with channel_to(shell_with(ScriptedRunner(saying(ModelCallStarted(call=1), piece, FINISHED)))) as channel:
        call = ChatShellStub(channel).Execute(request_to_proto(full_request()), metadata=AUTHORIZED)
        kinds = [event.WhichOneof("event") async for event in call]
    assert kinds == ["model_call_started", "turn_finished"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"\xff\xff\xff", None),
        (b"\x0a\x03\xed\xa0\x80", None),
        (b"", "user"),
        (request_pb2.ExecutionRequest(user=request_pb2.User()).SerializeToString(), "parameters"),
    ],
)
async def test_bytes_that_are_no_request_are_an_invalid_argument(body: bytes, param: str | None):
    async with channel_to(shell_with(ScriptedRunner(saying(FINISHED)))) as channel:
        execute = cast(Any, channel).unary_stream("/execution.v1.ChatShell/Execute")
        error = await refusal_of(execute(body, metadata=AUTHORIZED))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert report_in(error).param == param


async def test_a_draining_server_is_unavailable_and_says_not_serving():
    shell = shell_with(ScriptedRunner(saying(FINISHED)))
    async with serve_grpc(shell) as server, grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=HEALTH.FromString,
        )
        services = ["", "execution.v1.ChatShell"]
        before = [await check(health_pb2.HealthCheckRequest(service=service)) for service in services]
        shell.admission.close()
        await server.announce_drain()
        after = [await check(health_pb2.HealthCheckRequest(service=service)) for service in services]
        call = ChatShellStub(channel).Execute(request_to_proto(full_request()), metadata=AUTHORIZED)
        error = await refusal_of(call)
    assert [answer.status for answer in before] == [HEALTH.SERVING] * 2
    assert [answer.status for answer in after] == [HEALTH.NOT_SERVING] * 2
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert report_in(error).type == Draining.__name__


async def test_reflection_names_the_services():
    async with channel_to(shell_with(ScriptedRunner(saying(FINISHED)))) as channel:
        ask = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )
        call: Any = ask(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
        answers = [answer async for answer in call]
    assert {service.name for service in answers[0].list_services_response.service} >= {
        "execution.v1.ChatShell",
        "grpc.health.v1.Health",
    }


async def test_an_earlier_deadline_of_the_call_becomes_the_turns():
    runner = ScriptedRunner(saying(FINISHED))
    begun_at = datetime.now(UTC)
    async with channel_to(shell_with(runner)) as channel:
        execute = ChatShellStub(channel).Execute
        message = request_to_proto(full_request())
        _ = [event async for event in execute(message, metadata=AUTHORIZED, timeout=60)]
        _ = [event async for event in execute(message, metadata=AUTHORIZED)]
    bounded, unbounded = runner.requests
    # The time left is read when the call has come, and gRPC rounds a timeout up by some percent.
    earliest, latest = timedelta(seconds=59), timedelta(seconds=66)
    assert begun_at + earliest <= bounded.deadline <= datetime.now(UTC) + latest
    assert bounded == full_request().model_copy(update={"deadline": bounded.deadline})
    assert unbounded == full_request()


async def test_the_deadline_of_a_call_closes_the_runner():
    shell = shell_with(ScriptedRunner(waiting_after()))
    async with channel_to(shell) as channel:
        for patience_seconds in (0.3, 3, 30):  # a busy machine may need longer to begin the turn
            execute = ChatShellStub(channel).Execute
            call = execute(request_to_proto(full_request()), metadata=AUTHORIZED, timeout=patience_seconds)
            error = await refusal_of(call)
            assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            if shell.runner.requests:
                break
        await shell.runner.closed.wait()
        await shell.admission.wait_until_idle()


async def test_an_event_that_cannot_be_written_is_an_internal_error():
    shell = shell_with(ScriptedRunner(saying(TextDelta(text="\ud800"), FINISHED)))
    async with channel_to(shell) as channel:
        call = ChatShellStub(channel).Execute(request_to_proto(full_request()), metadata=AUTHORIZED)
        error = await refusal_of(call)
    assert error.code() is grpc.StatusCode.INTERNAL
    assert shell.runner.live == 0


async def test_a_defect_is_logged_and_its_text_is_not_sent():
    def broken_list() -> tuple[ModelCard, ...]:
        raise ZeroDivisionError("secret")

    shell = shell_with(ScriptedRunner(saying(FINISHED)), broken_list)
    async with channel_to(shell) as channel:
        with capture_logs() as logs, pytest.raises(grpc.aio.AioRpcError) as raised:
            await ChatShellStub(channel).ListModels(chat_shell_pb2.ListModelsRequest(), metadata=AUTHORIZED)
    assert raised.value.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in (raised.value.details() or "")
    assert [(line["event"], line["exc_info"]) for line in logs] == [("Call broke", True)]


async def test_many_calls_that_are_dropped_leave_nothing_behind():
    shell = shell_with(ScriptedRunner(waiting_after(ModelCallStarted(call=1))))
    async with channel_to(shell) as channel:
        stub = ChatShellStub(channel)

        async def drop_one() -> None:
            call = stub.Execute(request_to_proto(full_request()), metadata=AUTHORIZED)
            await call.read()
            call.cancel()

        async with asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(drop_one())
        await shell.admission.wait_until_idle()
    assert len(shell.runner.requests) == 50
    assert shell.runner.live == 0
