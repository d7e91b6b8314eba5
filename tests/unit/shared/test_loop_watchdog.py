"""The watchdog sees that the loop is held, how long and where; and that it is not."""

import asyncio
import sys
import threading
import time
from types import FrameType

from shared.loop_watchdog import Held, LatestLags, LoopWatchdog


def hold_the_loop_here(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


async def test_a_held_loop_is_reported_with_the_place_and_without_values() -> None:
    reports = asyncio.Queue[Held]()
    loop = asyncio.get_running_loop()

    def report(held: Held) -> None:
        loop.call_soon_threadsafe(reports.put_nowait, held)

    with LoopWatchdog(report, held_seconds=0.05, period_seconds=0.005) as watchdog:
        await asyncio.sleep(0.02)
        hold_the_loop_here(1.0)
        # On a busy machine others may hold the loop, too.
        held = await reports.get()
        while not any(".hold_the_loop_here:" in place for place in held.places):
            held = await reports.get()
        assert watchdog.lag_seconds >= held.lag_seconds >= 0.05
    assert 0 < held.cpu_seconds <= held.lag_seconds + 0.1


async def test_the_thread_ends_with_the_block_and_a_loop_that_waits_is_not_held() -> None:
    reports: list[Held] = []
    with LoopWatchdog(reports.append, held_seconds=30, period_seconds=0.001) as watchdog:
        names = {thread.name for thread in threading.enumerate()}
        await asyncio.sleep(0.05)
        assert watchdog.lag_seconds > 0
    assert "loop-watchdog" in names
    assert "loop-watchdog" not in {thread.name for thread in threading.enumerate()}
    assert not reports


def test_old_lags_are_forgotten_however_long_they_were() -> None:
    lags = LatestLags()
    for second in range(100):
        lags.add(float(second), 100.0 - second)
    assert lags.longest(99.0) == 100.0 - 84
    assert len(lags) == 16
    lags.add(100.0, 50.0)
    assert len(lags) == 1
    assert lags.longest(100.0) == 50.0
    assert lags.longest(116.0) == 0.0


def test_a_block_that_ends_as_the_loop_is_asked_does_not_wait_for_ever() -> None:
    """The thread stands between two looks, and goes on once the loop's thread waits for its end."""
    asking, is_joined = threading.Event(), threading.Event()

    def stop_before_a_look(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_name == "_measure":
            asking.set()
            is_joined.wait()

    def tell_of_joining(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_name == "join":
            is_joined.set()

    async def end_as_it_asks() -> None:
        threading.settrace(stop_before_a_look)
        try:
            with LoopWatchdog(lambda _: None, period_seconds=0.001):
                threading.settrace(None)
                asking.wait()
                sys.settrace(tell_of_joining)
        finally:
            sys.settrace(None)

    ending = threading.Thread(target=asyncio.run, args=(end_as_it_asks(),), daemon=True)
    ending.start()
    ending.join(timeout=30)
    assert is_joined.is_set()
    assert not ending.is_alive()
