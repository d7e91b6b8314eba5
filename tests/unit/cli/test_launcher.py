"""What `make setup-run` writes is a command that runs."""

import signal
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


def test_a_command_that_is_stopped_while_it_is_imported_ends_without_a_word(tmp_path: Path) -> None:
    declared = '[project.scripts]\nslow = "slow_to_import:main"\n'
    (tmp_path / "pyproject.toml").write_text(declared, encoding="utf-8")
    module = "import sys\nprint('begun', flush=True)\nsys.stdin.read()\n"
    (tmp_path / "slow_to_import.py").write_text(module, encoding="utf-8")
    write_launchers(tmp_path, Path(sys.executable), tmp_path)
    pipe = subprocess.PIPE
    with subprocess.Popen([str(tmp_path / "slow")], stdin=pipe, stdout=pipe, stderr=pipe, text=True) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "begun\n"
        command.send_signal(signal.SIGINT)
        said = command.communicate()[1]
    assert (command.returncode, said) == (-signal.SIGINT, "")


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
