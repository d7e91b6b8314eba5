"""`python -m backend reread` beside a backend that runs."""

import subprocess
import sys
from typing import Any

from tests.e2e.pair import Pair


def reread(pair: Pair) -> list[str]:
    with start_reread(pair) as started:
        told, _ = started.communicate()
    assert started.returncode == 0, told
    return told.splitlines()


def start_reread(pair: Pair, **options: Any) -> "subprocess.Popen[str]":
    spec = pair.backend.spec
    return subprocess.Popen(
        [sys.executable, "-m", "backend", "reread"],
        env=dict(spec.environment), cwd=spec.directory, stdout=subprocess.PIPE, text=True, **options,
    )  # fmt: skip
