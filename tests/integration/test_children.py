"""Child processes: stopping, killing, and what they print."""

import os
import signal
import sys
from pathlib import Path

import pytest

from deploy.demo.children import Child, ChildFailed, ChildSpec
from deploy.demo.kept_child import FIRST_PAUSE_SECONDS, STEADY_SECONDS, KeptChild
from deploy.demo.run import stop_all, watch
from tests.patience import PATIENCE_SECONDS

_OBEDIENT = "import time; print('up', flush=True); time.sleep(600)"
_STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {_OBEDIENT}"


def started(directory: Path, name: str, code: str) -> Child:
    child = Child(ChildSpec(name, (sys.executable, "-c", code), {}, directory, directory / f"{name}.log"))
    child.start()
    child.wait_until(lambda: "up" in child.log(), timeout_seconds=PATIENCE_SECONDS)
    return child


def test_all_children_are_stopped_and_the_stubborn_killed(tmp_path: Path):
    obedient, stubborn = started(tmp_path, "obedient", _OBEDIENT), started(tmp_path, "stubborn", _STUBBORN)
    stop_all([stubborn, obedient], timeout_seconds=1)
    assert obedient.exit_code == -signal.SIGTERM
    assert stubborn.exit_code == -signal.SIGKILL


def test_a_child_outlives_those_that_were_started_behind_it(tmp_path: Path):
    told = tmp_path / "told"
    last_words = f"signal.signal(signal.SIGTERM, lambda *_: (open({str(told)!r}, 'a').write(name), sys.exit(0)))"
    code = f"import signal, sys; name = '{{}}'; {last_words}; {_OBEDIENT}"
    children = [started(tmp_path, name, code.format(name)) for name in ("model ", "chat_shell ", "backend ")]
    stop_all(children, timeout_seconds=PATIENCE_SECONDS)
    assert told.read_text() == "backend chat_shell model "


def test_stopping_twice_is_stopping_once(tmp_path: Path):
    child = started(tmp_path, "child", _OBEDIENT)
    assert child.stop() == -signal.SIGTERM
    assert child.stop() == -signal.SIGTERM
    child.kill()
    assert child.exit_code == -signal.SIGTERM


def test_a_child_that_ends_early_is_told_with_its_words(tmp_path: Path):
    spec = ChildSpec(
        "child", (sys.executable, "-c", "raise SystemExit('BACKEND_PORT: wrong')"), {}, tmp_path, tmp_path / "log"
    )
    child = Child(spec)
    child.start()
    with pytest.raises(ChildFailed, match=r"child ended with 1\nBACKEND_PORT: wrong"):
        child.wait_until(lambda: False, timeout_seconds=PATIENCE_SECONDS)


def test_a_child_that_somebody_kills_is_told_by_the_signal(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    child = started(tmp_path, "child", _OBEDIENT)
    os.kill(child.pid, signal.SIGKILL)
    assert watch([child]) == 1
    assert capfd.readouterr().err == "child was killed (SIGKILL)\nup\n\n"
    assert child.exit_code == -signal.SIGKILL


@pytest.mark.parametrize(
    ("log", "tail"),
    [
        ("", ""),
        ("short\nlog\n", "short\nlog\n"),
        ("long " * 1000 + "\nlast line\n", "last line\n"),
        (f"first\n{'x' * 3999}\n", f"{'x' * 3999}\n"),
        (f"first\n{'x' * 3990}\nlast line\n", "last line\n"),
        (f"first\n{'x' * 9000}\n", f"{'x' * 3999}\n"),
        (f"first\n{'x' * 9000}", "x" * 4000),
    ],
)
def test_what_is_told_of_a_log_begins_with_a_line(tmp_path: Path, log: str, tail: str):
    path = tmp_path / "log"
    path.write_text(log)
    assert Child(ChildSpec("child", (), {}, tmp_path, path)).log_tail() == tail


def test_a_kept_child_is_started_again_after_pauses_that_double(tmp_path: Path):
    now = 100.0
    once = ChildSpec("once", (sys.executable, "-c", "print('here')"), {}, tmp_path, tmp_path / "log")
    kept = KeptChild(Child(once), lambda: now)
    kept.start()
    for pause in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0):
        kept.child.wait_or_kill(PATIENCE_SECONDS)
        starts = kept.child.log().count("here")
        kept.look()
        now += pause - 0.01
        kept.look()
        assert kept.child.exit_code is not None
        now += 0.01
        kept.look()
        kept.child.wait_or_kill(PATIENCE_SECONDS)
        assert kept.child.log().count("here") == starts + 1
    now += STEADY_SECONDS
    kept.look()
    now += FIRST_PAUSE_SECONDS
    kept.look()
    kept.child.wait_or_kill(PATIENCE_SECONDS)
    assert kept.child.log().count("here") == 10


def test_a_kept_child_that_runs_is_left_alone(tmp_path: Path):
    sleeping = (sys.executable, "-c", "import signal; signal.pause()")
    kept = KeptChild(Child(ChildSpec("long", sleeping, {}, tmp_path, tmp_path / "log")))
    kept.start()
    try:
        before = kept.child.pid
        kept.look()
        assert (kept.child.pid, kept.child.exit_code) == (before, None)
    finally:
        kept.child.kill()
