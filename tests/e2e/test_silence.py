"""A chat_shell that stands still under even streams; docs/chaos.md tells what is checked.

How long a turn may be silent is not judged here, where the machine may be busy: `test_frozen.py` waits for ends.
"""

import subprocess
import sys

import pytest

from tests.servers.services import ROOT


@pytest.mark.whole
def test_nothing_is_lost_or_doubled_beside_a_process_that_stands_still() -> None:
    arguments = [
        "--seconds",
        "12",
        "--targets",
        "chat_shell_1",
        "--streams",
        "6",
        "--calm",
        "2",
        "--bound",
        "120",
        "--forked",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos.silence", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
