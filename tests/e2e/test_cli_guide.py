"""The commands of docs/cli.md, run as a user would, one after another, from the root of the repository."""

import os
import re
import subprocess
import sys
from pathlib import Path

from requirements.install import write_launchers
from tests.e2e.pair import Pair
from tests.fakes.model_server import FakeModelControl, Reply
from tests.house.sources import ROOT

GUIDE = ROOT / "docs" / "cli.md"


def blocks() -> list[str]:
    return re.findall(r"```sh\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


async def test_every_command_of_the_guide_works(
    small_pair: Pair, small_model: FakeModelControl, tmp_path: Path
) -> None:
    await small_model.script(Reply(text=("Asked and answered.",), repeat=True))
    write_launchers(ROOT, Path(sys.executable), tmp_path)
    environ = {
        "PATH": os.environ["PATH"],
        "BALLAST_URL": small_pair.backend_url,
        "BALLAST_KEY": small_pair.key("cli-reader"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    assert blocks()
    for block in blocks():
        commands = block.replace(".venv/bin/", f"{tmp_path}/")
        done = subprocess.run(
            ["bash", "-euc", commands], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
