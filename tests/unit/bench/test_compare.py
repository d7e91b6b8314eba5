"""What the scale says of bursts, and what it takes for the CPU of a process."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.bench.compare import Compared, state_before
from tests.bench.pair import cpu_seconds_of
from tests.upgrade.previous import NoPreviousRelease

BEFORE = (100.0, 104.0, 110.0, 130.0, 101.0)
SPENDING = """
import sys, threading, time
def spend():
    while time.thread_time() < 0.2:
        pass
thread = threading.Thread(target=spend)
thread.start()
thread.join()
print(time.process_time(), flush=True)
sys.stdin.read()
"""


def row(*now: float) -> Compared:
    return Compared("sqlite", "a short turn", "turn", BEFORE, now)


@pytest.mark.parametrize(
    ("now", "is_heavier"),
    [
        (BEFORE, False),
        (tuple(1.04 * each for each in BEFORE), False),
        (tuple(1.06 * each for each in BEFORE), True),
        # one burst that nobody disturbed, on either side, is not enough
        ((100.0, 130.0, 130.0, 150.0, 130.0), False),
        ((107.0, 105.0, 111.0, 131.0, 106.0), False),
    ],
)
def test_a_row_is_heavier_by_its_least_burst_and_by_most_of_them(now: tuple[float, ...], is_heavier: bool) -> None:
    assert row(*now).is_heavier is is_heavier


def test_a_second_run_is_added_to_the_first() -> None:
    heavier = row(*(1.06 * each for each in BEFORE))
    again = row(*(0.98 * each for each in BEFORE))
    assert heavier.is_heavier
    assert not heavier.with_more(again).is_heavier
    assert heavier.with_more(heavier).is_heavier


def test_a_clone_without_the_release_before_is_told_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(NoPreviousRelease, match="git fetch --unshallow"):
        state_before("0" * 40, tmp_path)


def test_the_cpu_of_threads_that_have_ended_counts() -> None:
    command = [sys.executable, "-c", SPENDING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        own = float(child.stdout.readline())
        assert own <= cpu_seconds_of(psutil.Process(child.pid)) < own + 1
        child.kill()
