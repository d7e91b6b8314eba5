"""Reading executions: whoever waits for the events of one comes to their end, whenever it is ended."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from backend.turns.services.run.execution_reader import ExecutionEvents, ExecutionReader
from backend.turns.services.turn_ports import TurnPorts
from shared.clock import SystemClock
from shared.errors import BallastError, DeadlineExceeded, UnknownModel
from shared.models.events import ExecutionEvent, TextDelta
from shared.models.execution import ExecutionRequest
from tests.fakes.chat_shell_requests import full_request
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.openai_house import open_house
from tests.patience import PATIENCE_SECONDS


async def test_an_execution_that_is_ended_before_it_has_begun_comes_to_its_end() -> None:
    async with open_house(answer("One.")) as house:
        await house.ask()
        async with asyncio.timeout(PATIENCE_SECONDS):
            reader = ExecutionReader(house.ports)
            execution = reader.start(house.sent[0])
            execution.end()
            assert not await execution.take()
        assert (reader.error, len(house.sent)) == (None, 1)


class Talking:
    """Implements the part of chat_shell that a reader needs: a link that keeps what arrives until it is taken."""

    def __init__(self) -> None:
        self.arrived: asyncio.Queue[tuple[ExecutionEvent, ...] | BallastError] = asyncio.Queue()
        self.is_closed = False

    def execute(self, _request: ExecutionRequest) -> "Talking":
        return self

    def __aiter__(self) -> "Talking":
        return self

    async def __anext__(self) -> tuple[ExecutionEvent, ...]:
        found = await self.arrived.get()
        if isinstance(found, BallastError):
            raise found
        return found

    async def aclose(self) -> None:
        self.is_closed = True


@asynccontextmanager
async def reading() -> AsyncGenerator[tuple[ExecutionReader, ExecutionEvents, Talking]]:
    shell, clock = Talking(), SystemClock()
    ports = SimpleNamespace(chat_shell=shell, clock=clock)
    request = full_request().model_copy(update={"deadline": clock.now() + timedelta(seconds=PATIENCE_SECONDS)})
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        aclosing(ExecutionReader(cast(TurnPorts, ports))) as reader,
    ):
        yield reader, reader.start(request), shell
    assert shell.is_closed


ONE, TWO, THREE = ((TextDelta(text=text),) for text in ("one", "two", "three"))


async def test_what_has_arrived_when_it_is_ended_is_still_taken_and_nothing_else_is_waited_for() -> None:
    async with reading() as (reader, execution, shell):
        shell.arrived.put_nowait(ONE)
        assert await execution.take() == ONE
        for each in (TWO, THREE):
            shell.arrived.put_nowait(each)
        reader.stop()
        assert [await execution.take() for _ in range(3)] == [TWO, THREE, ()]
        assert reader.error is None
        assert await execution.take() == ()


async def test_who_waits_is_woken_by_the_end_and_is_not_cancelled() -> None:
    async with reading() as (reader, execution, shell):
        shell.arrived.put_nowait(ONE)
        assert await execution.take() == ONE
        asyncio.get_running_loop().call_soon(execution.end)
        assert await execution.take() == ()
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()
        await asyncio.sleep(0)
        assert reader.error is None


async def test_events_that_come_as_it_is_ended_are_not_lost() -> None:
    async with reading() as (_, execution, shell):
        shell.arrived.put_nowait(ONE)
        assert await execution.take() == ONE

        def end_and_say() -> None:
            execution.end()
            shell.arrived.put_nowait(TWO)

        asyncio.get_running_loop().call_soon(end_and_say)
        assert [await execution.take() for _ in range(2)] == [TWO, ()]


async def test_an_end_before_the_first_event_does_not_send_the_request_again() -> None:
    async with reading() as (_, execution, shell):
        asyncio.get_running_loop().call_soon(execution.end)
        assert await execution.take() == ()
        shell.arrived.put_nowait(ONE)
        assert await execution.take() == ()


async def test_a_cancelled_turn_stays_cancelled_though_its_execution_is_ended() -> None:
    async with reading() as (_, execution, shell):
        shell.arrived.put_nowait(ONE)
        await execution.take()
        taking = asyncio.create_task(cast(Any, execution.take()))
        await asyncio.sleep(0)
        taking.cancel()
        execution.end()
        with pytest.raises(asyncio.CancelledError):
            await taking


async def test_what_a_stream_ends_with_is_told() -> None:
    async with reading() as (reader, execution, shell):
        shell.arrived.put_nowait(UnknownModel("No."))
        assert await execution.take() == ()
        assert isinstance(reader.error, UnknownModel)


async def test_one_that_takes_too_long_is_ended() -> None:
    shell = Talking()
    execution = ExecutionEvents(cast(Any, shell), 0.01)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await execution.take() == ()
    assert isinstance(execution.error, DeadlineExceeded)
    assert shell.is_closed


async def test_a_turn_that_takes_nothing_closes_what_it_began() -> None:
    async with reading():
        """The first event is waited for."""
