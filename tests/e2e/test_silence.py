"""Two processes that stand still, one after the other, under even streams; docs/chaos.md tells what is checked."""

import subprocess
import sys

import pytest

from tests.servers.services import ROOT


@pytest.mark.whole
def test_turns_end_or_go_on_beside_processes_that_stand_still() -> None:
    arguments = ["--seconds", "12", "--targets", "chat_shell_1,backend_1", "--streams", "6", "--forked"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos.silence", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
