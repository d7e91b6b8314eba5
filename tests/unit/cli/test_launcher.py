"""What `make setup-run` writes is a command that runs."""

import subprocess
import sys
from pathlib import Path

from requirements.install import write_launchers
from tests.house.sources import ROOT


def test_the_launcher_runs_the_command(tmp_path: Path) -> None:
    write_launchers(ROOT, Path(sys.executable), tmp_path)
    asked = [str(tmp_path / "ballast"), "--help"]
    done = subprocess.run(asked, cwd=tmp_path, env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage: ballast" in done.stdout
