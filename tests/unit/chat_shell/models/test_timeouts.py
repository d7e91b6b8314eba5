"""Which of its two bounds ended a wait, under the loop that the service runs on."""

import asyncio

import pytest
import uvloop

from chat_shell.models.transport.timeouts import ProviderTimeouts
from shared.errors import DeadlineExceeded, ModelStalled

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
