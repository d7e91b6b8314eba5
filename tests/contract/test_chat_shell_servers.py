"""One suite for both ways from the backend into chat_shell: client and server together, on loopback."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from structlog.testing import capture_logs

from backend.chat_shell_client.ports.chat_shell import ChatShell
from shared.errors import (
    BallastError,
    ChatShellUnavailable,
    DeadlineExceeded,
    InternalError,
    InvalidRequest,
    ModelStalled,
    PayloadTooLarge,
    UnknownModel,
)
from shared.models.events import (
    ExecutionEvent,
    FunctionCallDelta,
    ModelCallStarted,
    TextDelta,
    TurnFailed,
    TurnFinished,
)
from shared.models.execution import ExecutionRequest
from shared.models.messages import TextPart, ToolMessage
from tests.fakes.chat_shell_cable import cable_to
from tests.fakes.chat_shell_events import EVERY_EVENT, FAILED, FINISHED, WHOLE_TURN
from tests.fakes.chat_shell_requests import full_request
from tests.fakes.chat_shell_runner import (
    CARDS,
    ScriptedRunner,
    failing_after,
    saying,
    saying_all,
    waiting_after,
)
from tests.fakes.chat_shell_servers import MAX_BYTES, connected, pair, server_address, shell_with

STARTED = ModelCallStarted(call=1)

pytestmark = pytest.mark.parametrize("transport", ["grpc", "http"])

Stream = AsyncGenerator[tuple[ExecutionEvent, ...]]


def stream_of(client: ChatShell, request: ExecutionRequest | None = None) -> Stream:
    return cast(Stream, client.execute(request or full_request()))


async def all_events(client: ChatShell, request: ExecutionRequest | None = None) -> list[ExecutionEvent]:
    async with aclosing(stream_of(client, request)) as stream:
        return [event async for ready in stream for event in ready]


def joined(events: Sequence[ExecutionEvent]) -> list[ExecutionEvent]:
    """Servers may join text deltas that follow each other, and nothing else."""
    result: list[ExecutionEvent] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            result[-1] = TextDelta(text=last.text + event.text)
        else:
            result.append(event)
    return result


async def test_all_events_arrive_in_order(transport: str):
    shell = shell_with(ScriptedRunner(saying(*WHOLE_TURN)))
    async with pair(transport, shell) as client:
        assert await all_events(client) == list(WHOLE_TURN)


async def test_pieces_of_a_call_arrive_one_by_one(transport: str):
    pieces = [FunctionCallDelta(call_id="c", name="weather", arguments=text) for text in ("{", "}")]
    shell = shell_with(ScriptedRunner(saying(STARTED, *pieces, FINISHED)))
    async with pair(transport, shell) as client:
        assert await all_events(client) == [STARTED, *pieces, FINISHED]


async def test_a_failed_turn_is_an_event(transport: str):
    shell = shell_with(ScriptedRunner(saying(STARTED, FAILED)))
    async with pair(transport, shell) as client:
        assert await all_events(client) == [STARTED, FAILED]


async def test_a_thousand_deltas_lose_no_character(transport: str):
    deltas = [TextDelta(text=f"{number} 词 ") for number in range(1_000)]
    shell = shell_with(ScriptedRunner(saying_all([STARTED, *deltas, *EVERY_EVENT[1:-1]])))
    async with pair(transport, shell) as client:
        arrived = await all_events(client)
    assert joined(arrived) == joined([STARTED, *deltas, *EVERY_EVENT[1:-1]])


async def test_the_request_arrives_as_it_was_sent(transport: str):
    runner = ScriptedRunner(saying(FINISHED))
    continued = full_request().model_copy(
        update={"prompt": None, "history": (ToolMessage(call_id="c", content=(TextPart(text=""),)),)}
    )
    async with pair(transport, shell_with(runner)) as client:
        await all_events(client)
        await all_events(client, continued)
    assert runner.requests == [full_request(), continued]


async def test_the_order_of_keys_in_a_tools_schema_arrives(transport: str):
    runner = ScriptedRunner(saying(FINISHED))
    async with pair(transport, shell_with(runner)) as client:
        await all_events(client)
    assert list(runner.requests[0].tools[0].parameters or {}) == ["type", "properties", "required"]


async def test_a_large_turn_arrives_whole(transport: str):
    runner = ScriptedRunner(saying(TextDelta(text="词" * 1_000_000), FINISHED))
    request = full_request().model_copy(update={"system_prompt": "词" * 2_000_000})
    async with pair(transport, shell_with(runner)) as client:
        assert await all_events(client, request) == [TextDelta(text="词" * 1_000_000), FINISHED]
    assert runner.requests == [request]


async def test_a_turn_over_the_limit_is_refused(transport: str):
    runner = ScriptedRunner(saying(FINISHED))
    request = full_request().model_copy(update={"system_prompt": "x" * (MAX_BYTES + 1)})
    async with pair(transport, shell_with(runner)) as client:
        with pytest.raises(PayloadTooLarge):
            await all_events(client, request)
    assert not runner.requests


async def test_a_lone_surrogate_is_refused_by_its_place(transport: str):
    runner = ScriptedRunner(saying(FINISHED))
    request = full_request().model_copy(update={"time_zone": "\ud800"})
    async with pair(transport, shell_with(runner)) as client:
        with pytest.raises(InvalidRequest) as refusal:
            await all_events(client, request)
    assert (refusal.value.param or "").endswith("time_zone")
    assert not runner.requests


async def test_closing_the_iterator_closes_the_runner(transport: str):
    shell = shell_with(ScriptedRunner(waiting_after(STARTED)))
    async with pair(transport, shell) as client:
        stream = stream_of(client)
        assert await anext(stream) == (STARTED,)
        assert shell.admission.running == 1
        await stream.aclose()
        await shell.runner.closed.wait()
        await shell.admission.wait_until_idle()
    assert shell.runner.live == 0


async def test_closing_between_deltas_that_never_pause_closes_the_runner(transport: str):
    async def endless(_request: ExecutionRequest) -> AsyncGenerator[ExecutionEvent]:
        while True:
            yield TextDelta(text="on and on ")
            await asyncio.sleep(0)

    shell = shell_with(ScriptedRunner(endless))
    async with pair(transport, shell) as client:
        async with aclosing(stream_of(client)) as stream:
            await anext(stream)
            await anext(stream)
        await shell.runner.closed.wait()
        await shell.admission.wait_until_idle()


async def test_cancelling_the_consumer_before_the_first_event_closes_the_runner(transport: str):
    begun = asyncio.Event()

    async def silent(_request: ExecutionRequest) -> AsyncGenerator[ExecutionEvent]:
        begun.set()
        await asyncio.Event().wait()
        yield FINISHED

    shell = shell_with(ScriptedRunner(silent))
    async with pair(transport, shell) as client, asyncio.TaskGroup() as group:
        consumer = group.create_task(all_events(client))
        await begun.wait()
        consumer.cancel()
        await shell.runner.closed.wait()
        await shell.admission.wait_until_idle()
    assert consumer.cancelled()


async def test_no_turn_outlives_its_consumer(transport: str):
    shell = shell_with(ScriptedRunner(waiting_after(STARTED, TextDelta(text="x"))))
    async with pair(transport, shell) as client:
        for _ in range(20):
            stream = stream_of(client)
            await anext(stream)
            await stream.aclose()
        await shell.admission.wait_until_idle()
    assert len(shell.runner.requests) == 20
    assert shell.runner.live == 0


class ClockBeforeTheEnd:
    """A clock that stands shortly before the deadline of `full_request`, however slowly a turn begins."""

    def now(self) -> datetime:
        return full_request().deadline - timedelta(seconds=0.3)


async def test_a_passed_deadline_starts_nothing(transport: str):
    shell = shell_with(ScriptedRunner(saying(FINISHED)))
    late = full_request().model_copy(update={"deadline": datetime.now(UTC) - timedelta(seconds=1)})
    async with pair(transport, shell) as client:
        with pytest.raises(DeadlineExceeded):
            await all_events(client, late)
    assert not shell.runner.requests


async def test_a_deadline_ends_a_turn_that_does_not_end_itself(transport: str):
    shell = shell_with(ScriptedRunner(waiting_after(STARTED)), clock=ClockBeforeTheEnd())
    async with pair(transport, shell) as client:
        *_, last = await all_events(client)
        await shell.runner.closed.wait()
    assert isinstance(last, TurnFailed)
    assert last.error.type == "DeadlineExceeded"
    assert last.error.retryable


async def test_a_deadline_before_the_first_event_is_raised(transport: str):
    shell = shell_with(ScriptedRunner(waiting_after()), clock=ClockBeforeTheEnd())
    async with pair(transport, shell) as client:
        with pytest.raises(DeadlineExceeded):
            await all_events(client)


async def test_a_wrong_service_token_starts_nothing(transport: str):
    shell = shell_with(ScriptedRunner(saying(FINISHED)))
    async with server_address(transport, shell) as address, connected(address, "wrong") as client:
        with pytest.raises(InternalError, match="token"):
            await all_events(client)
        with pytest.raises(InternalError, match="token"):
            await client.models()
    assert not shell.runner.requests


@pytest.mark.parametrize(
    ("error", "kind", "param"),
    [
        (UnknownModel("No model of that name."), UnknownModel, None),
        (InvalidRequest("tools[0].name: is taken", param="tools[0].name"), InvalidRequest, "tools[0].name"),
        (ModelStalled("The model stalled."), ModelStalled, None),
        (ZeroDivisionError("secret"), InternalError, None),
    ],
)
async def test_an_error_before_the_first_event_is_raised_again(
    transport: str, error: Exception, kind: type[BallastError], param: str | None
):
    shell = shell_with(ScriptedRunner(failing_after(error)))
    async with pair(transport, shell) as client:
        with pytest.raises(BallastError) as raised, capture_logs() as logs:
            await all_events(client)
    assert type(raised.value) is kind
    assert raised.value.param == param
    assert "secret" not in raised.value.message
    assert [line["event"] for line in logs] == (["Turn broke"] if kind is InternalError else [])


@pytest.mark.parametrize(
    ("error", "kind"), [(ModelStalled("The model stalled."), "ModelStalled"), (KeyError("secret"), "InternalError")]
)
async def test_an_error_behind_the_first_event_is_an_event(transport: str, error: Exception, kind: str):
    shell = shell_with(ScriptedRunner(failing_after(error, STARTED, TextDelta(text="Half"))))
    async with pair(transport, shell) as client:
        with capture_logs() as logs:
            *said, last = await all_events(client)
    assert said == [STARTED, TextDelta(text="Half")]
    assert isinstance(last, TurnFailed)
    assert last.error.type == kind
    assert "secret" not in last.error.message
    assert [bool(line["exc_info"]) for line in logs] == ([True] if kind == "InternalError" else [])


async def test_a_runner_that_breaks_behind_its_terminal_event_changes_nothing(transport: str):
    shell = shell_with(ScriptedRunner(failing_after(KeyError("late"), STARTED, FINISHED)))
    async with pair(transport, shell) as client:
        with capture_logs() as logs:
            assert await all_events(client) == [STARTED, FINISHED]
    assert len(logs) == 1


async def test_a_turn_without_a_terminal_event_is_broken_off(transport: str):
    shell = shell_with(ScriptedRunner(saying(STARTED, TextDelta(text="Half"))))
    arrived: list[ExecutionEvent] = []
    async with pair(transport, shell) as client:
        with pytest.raises(ChatShellUnavailable):
            async for ready in client.execute(full_request()):
                arrived.extend(ready)
    assert arrived == [STARTED, TextDelta(text="Half")]


async def test_a_connection_lost_in_mid_stream_is_broken_off(transport: str):
    shell = shell_with(ScriptedRunner(waiting_after(STARTED)))
    async with (
        server_address(transport, shell) as address,
        cable_to(address) as (near_end, cable),
        connected(near_end) as client,
        aclosing(stream_of(client)) as stream,
    ):
        assert await anext(stream) == (STARTED,)
        cable.cut()
        with pytest.raises(ChatShellUnavailable):
            await anext(stream)
        await shell.runner.closed.wait()
        await shell.admission.wait_until_idle()


async def test_nobody_there_is_unavailable(transport: str):
    async with server_address(transport, shell_with(ScriptedRunner(saying(FINISHED)))) as address:
        pass
    async with connected(address) as client:
        with pytest.raises(ChatShellUnavailable):
            await all_events(client)
        with pytest.raises(ChatShellUnavailable):
            await client.models()


async def test_a_slow_consumer_bounds_what_is_produced_ahead(transport: str):
    size, total = 65_536, 800
    shell = shell_with(ScriptedRunner(saying_all([*[TextDelta(text="x" * size)] * total, FINISHED])))
    taken = furthest_ahead = 0
    async with pair(transport, shell) as client, aclosing(stream_of(client)) as stream:
        async for ready in stream:
            taken += sum(len(event.text) for event in ready if isinstance(event, TextDelta))
            for _ in range(20):
                await asyncio.sleep(0)
            furthest_ahead = max(furthest_ahead, shell.runner.produced - taken // size)
    assert taken == size * total
    assert furthest_ahead < total / 2


async def test_models_are_listed(transport: str):
    async with pair(transport, shell_with(ScriptedRunner(saying(FINISHED)))) as client:
        assert await client.models() == CARDS


async def test_a_draining_shell_refuses_new_turns_and_finishes_running_ones(transport: str):
    finish = asyncio.Event()

    async def patient(_request: ExecutionRequest) -> AsyncGenerator[ExecutionEvent]:
        yield STARTED
        await finish.wait()
        yield FINISHED

    shell = shell_with(ScriptedRunner(patient))
    async with pair(transport, shell) as client, aclosing(stream_of(client)) as stream:
        assert await anext(stream) == (STARTED,)
        shell.admission.close()
        with pytest.raises(ChatShellUnavailable) as refusal:
            await all_events(client)
        finish.set()
        assert [event async for ready in stream for event in ready] == [FINISHED]
        await shell.admission.wait_until_idle()
    assert refusal.value.retryable
    assert len(shell.runner.requests) == 1


async def test_turns_run_side_by_side(transport: str):
    everyone = asyncio.Barrier(8)

    async def together(_request: ExecutionRequest) -> AsyncGenerator[ExecutionEvent]:
        await everyone.wait()
        yield FINISHED

    shell = shell_with(ScriptedRunner(together))
    async with pair(transport, shell) as client:
        answers = await asyncio.gather(*(all_events(client) for _ in range(8)))
    assert answers == [[TurnFinished(finish_reason=FINISHED.finish_reason, usage=FINISHED.usage)]] * 8
