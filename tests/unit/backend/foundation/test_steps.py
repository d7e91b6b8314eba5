"""Where long work runs: between the steps of others, or in a thread."""

import threading

from backend.foundation.domain.json_objects import Pause, Steps
from backend.foundation.services.steps import run_cooperatively


def noting(pause: Pause | None) -> Steps[list[int]]:
    ran_in = [threading.get_ident()]
    yield pause
    ran_in.append(threading.get_ident())
    yield
    ran_in.append(threading.get_ident())
    return ran_in


async def test_short_steps_run_on_the_event_loop() -> None:
    assert set(await run_cooperatively(noting(None))) == {threading.get_ident()}


async def test_a_long_step_and_what_follows_run_in_a_thread() -> None:
    before, *behind = await run_cooperatively(noting(Pause.BEFORE_LONG))
    assert before == threading.get_ident()
    assert threading.get_ident() not in behind
