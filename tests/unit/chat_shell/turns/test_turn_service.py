import asyncio
import contextlib
import gc
import itertools
import weakref
from collections.abc import AsyncGenerator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat_shell_client.chosen import connect_chat_shell
from chat_shell.foundation.services.admission import Admission
from chat_shell.turns.services.event_buffer import MAX_JOINED_CHARACTERS, EventBuffer
from chat_shell.turns.services.turn_service import TurnService
from shared.errors import Draining, UnknownModel
from shared.models.coalescing import coalesce
from shared.models.events import ExecutionEvent, ModelCallStarted, ReasoningDelta, TextDelta
from shared.models.execution import ExecutionRequest
from tests.fakes.certificates import no_certificates
from tests.fakes.chat_shell_events import FINISHED
from tests.fakes.chat_shell_requests import full_request
from tests.fakes.chat_shell_runner import CARDS, ScriptedRunner, ScriptedTool, saying, waiting_after
from tests.fakes.clock import FakeClock
from tests.fakes.supervision import make_supervisor

TEXT = TextDelta(text="x")


@given(st.lists(st.builds(TextDelta, text=st.text(max_size=3)) | st.just(ModelCallStarted(call=1)), max_size=20))
def test_joining_keeps_every_character_and_the_place_of_everything_else(events: list[ExecutionEvent]):
    def flat(some: tuple[ExecutionEvent, ...]) -> list[object]:
        return [part for event in some for part in (event.text if isinstance(event, TextDelta) else (event,))]

    joined = coalesce(events, MAX_JOINED_CHARACTERS)
    assert flat(joined) == flat(tuple(events))
    neighbours = itertools.pairwise(joined)
    assert not any(isinstance(one, TextDelta) and isinstance(next_, TextDelta) for one, next_ in neighbours)


def test_other_deltas_are_not_joined():
    events = (ReasoningDelta(text="a"), ReasoningDelta(text="b"))
    assert coalesce(events, MAX_JOINED_CHARACTERS) == events


def test_what_is_joined_has_a_size():
    big = TextDelta(text="x" * (MAX_JOINED_CHARACTERS - 1))
    assert coalesce([big, TEXT, TEXT], MAX_JOINED_CHARACTERS) == (TextDelta(text=big.text + "x"), TEXT)


async def test_a_full_buffer_makes_the_writer_wait():
    buffer = EventBuffer(max_events=2)
    await buffer.put(ModelCallStarted(call=1))
    await buffer.put(ModelCallStarted(call=2))
    async with asyncio.TaskGroup() as group:
        third = group.create_task(buffer.put(ModelCallStarted(call=3)))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not third.done()
        assert await buffer.take() == tuple(ModelCallStarted(call=call) for call in (1, 2, 3))


async def test_final_events_find_room_in_a_full_buffer():
    buffer = EventBuffer(max_events=1)
    await buffer.put(ModelCallStarted(call=1))
    buffer.end(final_events=(FINISHED,))
    assert await buffer.take() == (ModelCallStarted(call=1), FINISHED)
    assert await buffer.take() == ()
    assert await buffer.take() == ()


async def test_a_refusal_is_raised_to_the_reader():
    buffer = EventBuffer()
    buffer.end(refusal=UnknownModel("No model of that name."))
    with pytest.raises(UnknownModel):
        await buffer.take()


async def test_a_taker_that_was_cancelled_loses_nothing():
    buffer = EventBuffer()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await buffer.take()
    await buffer.put(TEXT)
    assert await buffer.take() == (TEXT,)


async def test_admission_counts_turns_and_waits_for_the_last():
    admission = Admission()
    await admission.wait_until_idle()
    with admission.admit():
        with admission.admit():
            assert admission.running == 2
        waiting = asyncio.ensure_future(admission.wait_until_idle())
        await asyncio.sleep(0)
        assert not waiting.done()
        admission.close()
    await waiting
    assert not admission.accepting
    with pytest.raises(Draining) as refusal, admission.admit():
        pass
    assert refusal.value.retryable
    assert admission.running == 0


def turns_of(runner: ScriptedRunner, admission: Admission) -> TurnService:
    clock = FakeClock()
    return TurnService(runner, ScriptedTool(), lambda: CARDS, clock, admission)


async def test_leaving_the_block_closes_the_runner_and_counts_down():
    admission = Admission()
    runner = ScriptedRunner(waiting_after(TEXT))
    async with turns_of(runner, admission).open(full_request()) as events:
        assert await events.take() == (TEXT,)
        assert (runner.live, admission.running) == (1, 1)
    assert (runner.live, admission.running) == (0, 0)


async def test_an_error_of_the_block_is_raised_as_it_is():
    runner = ScriptedRunner(waiting_after(TEXT))
    with pytest.raises(ConnectionResetError):
        async with turns_of(runner, Admission()).open(full_request()) as events:
            await events.take()
            raise ConnectionResetError
    assert runner.live == 0


@pytest.fixture
def without_collections() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collections")
async def test_a_refused_turn_leaves_no_cycle_that_holds_its_request():
    """A request may have 60 MB, and Python looks for cycles rarely."""

    async def refusing(_request: ExecutionRequest) -> AsyncGenerator[ExecutionEvent]:
        raise UnknownModel("No model of that name.")
        yield TEXT

    async def held_after_refusal() -> weakref.ref[ExecutionRequest]:
        request = full_request()
        with contextlib.suppress(UnknownModel):
            async with turns_of(ScriptedRunner(refusing), Admission()).open(request) as events:
                await events.take()
                pytest.fail("the turn was not refused")
        return weakref.ref(request)

    request = await held_after_refusal()
    assert request() is None


async def test_a_turn_is_its_events_and_then_nothing():
    async with turns_of(ScriptedRunner(saying(TEXT, TEXT, FINISHED)), Admission()).open(full_request()) as events:
        assert await events.take() == (TextDelta(text="xx"), FINISHED)
        assert await events.take() == ()


def test_only_an_earlier_deadline_counts():
    turns = turns_of(ScriptedRunner(saying()), Admission())
    request = full_request()
    assert turns.bring_forward(request, None) == request
    assert turns.bring_forward(request, 10.0**15) == request
    assert turns.bring_forward(request, 0.0).deadline == datetime(2026, 11, 22, 8, 30, tzinfo=UTC)
    assert turns.bring_forward(request, 60.0).deadline == datetime(2026, 11, 22, 8, 31, tzinfo=UTC)


def connect(url: str, token: str) -> None:
    """Ask for a client, which must not be had."""
    parts: dict[str, Any] = {"certificates": no_certificates(), "supervisor": make_supervisor()}
    connect_chat_shell(url, token, clock=FakeClock(), max_message_bytes=1, **parts)


@pytest.mark.parametrize("url", ["ftp://host", "grpc://", "localhost:50051", "http://", "dns:///"])
def test_an_address_that_is_none_is_refused(url: str):
    with pytest.raises(ValueError, match="no address"):
        connect(url, "token")


@pytest.mark.parametrize("token", ["tøken", "a\nb"])
def test_a_token_that_no_header_can_carry_is_refused(token: str):
    with pytest.raises(ValueError, match="token"):
        connect("grpc://host:1", token)
