"""When a wait for a provider ends, and which of its two bounds ended it, under the loop that the service runs on."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any

import pytest
import uvloop

from chat_shell.models.transport.timeouts import ProviderTimeouts
from shared.errors import BallastError, DeadlineExceeded, ModelStalled

WAITS = 30
"""uvloop's timers fire up to a millisecond early in one of three waits."""


async def _wait_in_vain(idle_seconds: float, remaining_seconds: float) -> None:
    await ProviderTimeouts(idle_seconds, remaining_seconds).wait(asyncio.Event().wait())


@pytest.mark.parametrize(
    ("idle_seconds", "remaining_seconds", "expected"), [(60, 0.0034, DeadlineExceeded), (0.0034, 60, ModelStalled)]
)
def test_the_nearer_bound_is_the_one_that_is_told(
    idle_seconds: float, remaining_seconds: float, expected: type[Exception]
) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for _ in range(WAITS):
            with pytest.raises(expected):
                runner.run(_wait_in_vain(idle_seconds, remaining_seconds))


def test_a_deadline_that_has_passed_is_told_at_once() -> None:
    async def check() -> None:
        ProviderTimeouts(60, 0).check()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, pytest.raises(DeadlineExceeded):
        runner.run(check())


class SteppedLoop(asyncio.SelectorEventLoop):
    """Has a clock that a test moves, and keeps all timers that were ever set."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self.timers: list[asyncio.TimerHandle] = []

    def time(self) -> float:
        return self.seconds

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self.timers.append(asyncio.TimerHandle(when, callback, args, self, context))
        return self.timers[-1]

    async def wait(self, seconds: float) -> None:
        """Let time pass, and the newest timer fire where it is due."""
        self.seconds += seconds
        newest = self.timers[-1]
        if newest.when() <= self.seconds and not newest.cancelled():
            newest._run()
            newest.cancel()


async def _watched(*steps: tuple[str, float]) -> tuple[list[BallastError], int]:
    """Take steps, each of so many seconds; return the errors that broke off a wait, and the number of timers."""
    loop, broken_off = asyncio.get_running_loop(), list[BallastError]()
    assert isinstance(loop, SteppedLoop)
    timeouts = ProviderTimeouts(60, 1000)
    with timeouts.watch(broken_off.append):
        for step, seconds in steps:
            if step == "wait":
                timeouts.begin_wait()
                await loop.wait(seconds)
                timeouts.end_wait()
            elif step == "work":
                await loop.wait(seconds)
            else:
                timeouts.renew(seconds or None)
    assert loop.timers[-1].cancelled()
    return broken_off, len(loop.timers)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([("wait", 59.9)], []),
        ([("wait", 60.0)], [ModelStalled]),
        ([("wait", 1), ("wait", 59)], [ModelStalled]),
        ([("wait", 59), ("work", 500), ("renew", 0), ("wait", 59)], []),
        ([("wait", 59), ("work", 500), ("renew", 0), ("wait", 60)], [ModelStalled]),
        ([("wait", 1), ("renew", 5), ("wait", 4.9)], []),
        ([("wait", 1), ("renew", 5), ("wait", 5)], [ModelStalled]),
        ([("wait", 59), ("work", 900), ("renew", 0), ("wait", 41)], [DeadlineExceeded]),
    ],
)
def test_a_wait_is_broken_off_at_its_limit(steps: list[tuple[str, float]], expected: list[type[BallastError]]) -> None:
    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        broken_off, _ = runner.run(_watched(*steps))
    assert [type(error) for error in broken_off] == expected


def test_waits_that_end_in_time_share_their_timer() -> None:
    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        broken_off, timers = runner.run(_watched(*[("wait", 0.02), ("renew", 0)] * 4000))
    assert (broken_off, timers) == ([], 2)
