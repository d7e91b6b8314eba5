"""Half a minute of faults under load, the same ones each time; docs/chaos.md tells what is checked."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.services import ROOT

SEED = 11
SECONDS = 30


@pytest.mark.whole
def test_half_a_minute_of_faults_breaks_no_promise(tmp_path: Path) -> None:
    arguments = [
        "--seconds",
        str(SECONDS),
        "--seed",
        str(SEED),
        "--no-disk",
        "--no-failover",
        "--forked",
        "--results",
        str(tmp_path),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
