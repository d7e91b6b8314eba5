"""When a wait for a provider ends, and which of its two bounds ended it, under the loop that the service runs on."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any

import pytest
import uvloop

from chat_shell.models.chat_completions.encoder import ChatCompletionsApi
from chat_shell.models.transport.streaming import Endpoint, StreamedModel
from chat_shell.models.transport.timeouts import ProviderTimeouts
from shared.errors import BallastError, DeadlineExceeded, ModelStalled
from tests.fakes.clock import FakeClock
from tests.fakes.model_calls import FAR, model_call

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


class SlowAnswer:
    """A response, its content, and the session that gets it: each frame comes so many seconds behind the one before."""

    status, headers = 200, dict[str, str]()
    frame = b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'
    last = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'

    def __init__(self, seconds: float, frames: int) -> None:
        self.content = self
        self._seconds = seconds
        self.frames = [self.frame] * frames + [self.last]
        self._broken_off: BallastError | None = None

    async def post(self, *_: object, **__: object) -> "SlowAnswer":
        return self

    async def read(self, _count: int) -> bytes:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SteppedLoop)
        await loop.wait(self._seconds)
        if self._broken_off is not None:
            raise self._broken_off
        return self.frames.pop(0)

    def set_exception(self, error: BallastError) -> None:
        self._broken_off = error

    def at_eof(self) -> bool:
        return True

    def close(self) -> None: ...


async def _characters_of(answer: Any) -> int:
    model = StreamedModel(Endpoint("http://model", idle_timeout_seconds=60), ChatCompletionsApi(), answer, FakeClock())
    return sum([hasattr(fragment, "text") async for fragment in model.stream(model_call(), FAR)])


def test_an_answer_may_take_longer_than_a_silence() -> None:
    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        assert runner.run(_characters_of(SlowAnswer(4, 50))) == 50
        with pytest.raises(ModelStalled):
            runner.run(_characters_of(SlowAnswer(61, 2)))


async def _seconds_of_a_flood(frames_at_once: int, frames: int) -> float:
    """Read an answer that is all there; return how much time must pass until it is read."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SteppedLoop)
    flood = SlowAnswer(0, 0)
    flood.frames = [SlowAnswer.frame * frames_at_once] * (frames // frames_at_once) + flood.frames
    reading = asyncio.create_task(_characters_of(flood))
    while not reading.done():
        seen = len(loop.timers)
        await asyncio.sleep(0)
        if len(loop.timers) > seen:
            await loop.wait(max(0.0, loop.timers[-1].when() - loop.time()))
    assert reading.result() == frames // frames_at_once
    return loop.time()


@pytest.mark.parametrize(("frames", "expected"), [(1_000, 0.0), (1_300, 0.03), (20_000, 1.9)])
def test_an_answer_that_comes_all_at_once_is_read_no_faster_than_models_send(frames: int, expected: float) -> None:
    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        assert runner.run(_seconds_of_a_flood(100, frames)) == pytest.approx(expected, abs=0.001)
