"""What `make setup-run` writes is a command that runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from cli.running import command_name
from requirements.install import write_launchers
from tests.house.sources import ROOT


@pytest.mark.parametrize("name", ["clone", "my clone"])
def test_the_launcher_runs_the_command_wherever_the_project_lies(name: str, tmp_path: Path) -> None:
    programs = tmp_path / name
    programs.mkdir()
    python = programs / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    write_launchers(ROOT, python, programs)
    asked = [str(programs / "ballast"), "--help"]
    done = subprocess.run(asked, cwd=tmp_path, env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage: ballast" in done.stdout


@pytest.mark.parametrize(
    ("typed", "found", "said"),
    [
        (".venv/bin/ballast", None, ".venv/bin/ballast"),
        (".venv/bin/ballast", "/usr/bin/ballast", "ballast"),
        ("cli/__main__.py", None, "ballast"),
    ],
)
def test_commands_to_copy_are_written_as_this_one_was_called(typed: str, found: str | None, said: str) -> None:
    assert command_name(typed, found) == said
