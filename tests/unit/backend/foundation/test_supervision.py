"""Work in the background outlives whatever happens to it."""

import asyncio
from contextlib import suppress
from typing import cast

import pytest
from prometheus_client import REGISTRY

from backend.foundation.services.supervision import (
    LONGEST_PAUSE_OF_RARE_WORK_SECONDS,
    LONGEST_PAUSE_SECONDS,
    Supervisor,
    result_or_error,
)
from backend.foundation.telemetry.background import LoggingFailureObserver
from shared.errors import Unavailable
from tests.fakes.driver_errors import all_errors
from tests.fakes.supervision import RecordingFailures, make_supervisor
from tests.patience import PATIENCE_SECONDS


class Failing:
    """Raises the errors one after the other, then sets `is_through` and succeeds."""

    def __init__(self, errors: list[BaseException]) -> None:
        self._errors = iter(errors)
        self.is_through = asyncio.Event()

    async def __call__(self) -> None:
        for error in self._errors:
            raise error
        self.is_through.set()


async def test_repeated_work_outlives_every_error_and_counts_each() -> None:
    failures, errors = RecordingFailures(), all_errors()
    step = Failing(errors)
    task = make_supervisor(failures).start("work", step, 0.0)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await step.is_through.wait()
    assert len(failures.failures) == len(errors)
    assert {name for name, _ in failures.failures} == {"work"}
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_work_that_is_to_be_done_once_is_tried_until_it_is_done() -> None:
    failures, errors = RecordingFailures(), all_errors()
    step = Failing(errors)
    await make_supervisor(failures).until_done("start", step)
    assert step.is_through.is_set()
    assert len(failures.failures) == len(errors)


async def test_what_the_start_needs_waits_for_an_outage_and_not_for_a_defect() -> None:
    failures, stop = RecordingFailures(), asyncio.Event()
    step = Failing([Unavailable("away"), Unavailable("away")])
    await make_supervisor(failures).through_outages("start", step, stop)
    assert step.is_through.is_set()
    assert len(failures.failures) == 2
    with pytest.raises(KeyError):
        await make_supervisor(failures).through_outages("start", Failing([KeyError("a bad row")]), stop)
    assert len(failures.failures) == 2
    stop.set()
    away = Failing([Unavailable("away")] * 9)
    await make_supervisor(failures).through_outages("start", away, stop)
    assert len(failures.failures) == 3


async def test_work_that_hangs_at_the_start_is_cancelled_when_the_process_is_to_stop() -> None:
    stop, begun, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    failures = RecordingFailures()

    async def step() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    work = asyncio.create_task(make_supervisor(failures).until_done("start", step, stop))
    await begun.wait()
    stop.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await work
    assert ended.is_set()
    assert failures.failures == []


async def test_work_at_the_start_ends_when_the_process_is_to_stop() -> None:
    stop = asyncio.Event()

    async def step() -> None:
        stop.set()
        raise Unavailable("away")

    await Supervisor(RecordingFailures(), lambda: 1.0, first_pause_seconds=3600.0).until_done("start", step, stop)


def test_pauses_grow_up_to_a_bound_and_spread() -> None:
    early, late = (Supervisor(RecordingFailures(), lambda jitter=jitter: jitter) for jitter in (0.0, 1.0))
    pauses = [early.pause_seconds(failures, 2.0) for failures in range(1, 100)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.1, LONGEST_PAUSE_SECONDS / 2)
    assert late.pause_seconds(1, 2.0) == 0.2
    assert late.pause_seconds(99, 3600.0) == LONGEST_PAUSE_OF_RARE_WORK_SECONDS


async def test_a_cancellation_that_nobody_asked_for_is_an_error_like_others() -> None:
    async def torn() -> None:
        raise asyncio.CancelledError

    assert isinstance(await result_or_error(torn()), asyncio.CancelledError)


async def test_a_cancellation_goes_on_once_the_work_has_ended_whatever_it_makes_of_it() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def deaf() -> str:
        begun.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        ended.set()
        return "done"

    task = asyncio.create_task(result_or_error(deaf()))
    await begun.wait()
    task.cancel()
    await asyncio.wait([task])
    assert ended.is_set()
    assert task.cancelled()


async def test_a_library_that_cancels_its_task_and_takes_nothing_back_ends_no_caller() -> None:
    """Libraries with scopes of their own may leave such a request behind where connecting fails."""

    async def leave_a_request() -> None:
        cast("asyncio.Task[object]", asyncio.current_task()).cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        raise Unavailable("away")

    assert await Supervisor(RecordingFailures(), lambda: 1.0).attempt("embedding", leave_a_request) is False
    assert isinstance(await result_or_error(leave_a_request()), Unavailable)


async def test_failures_are_counted_by_task_and_logged(capsys: pytest.CaptureFixture[str]) -> None:
    labels = {"task": "test_work"}
    before = REGISTRY.get_sample_value("ballast_background_failures_total", labels) or 0
    observer = LoggingFailureObserver()
    observer.background_failed("test_work", Unavailable("The database is not available."))
    observer.background_failed("test_work", KeyError("a defect"))
    assert REGISTRY.get_sample_value("ballast_background_failures_total", labels) == before + 2
