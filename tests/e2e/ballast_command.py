"""The command `ballast` as a child process against a pair."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson

from tests.e2e.pair import Pair
from tests.house.sources import ROOT


def environ_of(pair: Pair, user: str, state: Path) -> dict[str, str]:
    known = {"BALLAST_URL": pair.backend_url, "BALLAST_KEY": pair.key(user), "XDG_STATE_HOME": str(state)}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **known}


def ballast(environ: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cli", *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def lines_of(text: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in text.splitlines()]
