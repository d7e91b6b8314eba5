"""How commands end that nobody reads, and those that have a defect: never with a traceback."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx2
import pytest

from tests.fakes.ballast_api import FakeBallast
from tests.house.sources import ROOT
from tests.unit.cli.conftest import Command


def test_a_defect_is_one_message_and_its_traceback_a_file(
    command: Command, backend: FakeBallast, tmp_path: Path
) -> None:
    def broken(_request: httpx2.Request, _match: re.Match[str]) -> httpx2.Response:
        raise LookupError("planted")

    backend.on("GET /v1/agents", broken)
    ran = command("agents", "list", "--json")
    assert (ran.exit_code, ran.out) == (6, "")
    assert "This command has a defect: LookupError: planted" in ran.err
    assert "Traceback" not in ran.err
    assert "Traceback" in (tmp_path / "state" / "ballast" / "defects.log").read_text()


def test_a_defect_in_an_upload_is_one_message(command: Command, backend: FakeBallast, tmp_path: Path) -> None:
    def broken(_request: httpx2.Request, _match: re.Match[str]) -> httpx2.Response:
        raise LookupError("planted")

    (tmp_path / "a.md").write_text("A")
    backend.on("PUT .*", broken)
    ran = command("add", str(tmp_path / "a.md"), "--base", "Tea")
    assert ran.exit_code == 6
    assert "This command has a defect: LookupError: planted" in ran.err


def test_a_command_that_nobody_reads_ends_quietly(tmp_path: Path) -> None:
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    reader.wait()
    command = [sys.executable, "-m", "cli", "completion", "zsh"]
    environ = {"PATH": "", "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environ, stdout=reader.stdin, stderr=subprocess.PIPE, check=False)
    assert reader.stdin is not None
    reader.stdin.close()
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize(
    ("arguments", "complaint", "named"),
    [
        (["ask"], "Missing argument 'QUESTION'.", "ballast ask"),
        (["frobnicate"], "No such command 'frobnicate'.", "ballast"),
        (["bases", "list", "--colour"], "No such option '--colour'.", "ballast bases list"),
    ],
)
def test_wrong_use_ends_with_what_to_do(command: Command, arguments: list[str], complaint: str, named: str) -> None:
    ran = command(*arguments)
    usage, *_, told, mend = ran.err.splitlines()
    assert (ran.exit_code, ran.out) == (2, "")
    assert usage.startswith(f"Usage: {named}")
    assert told.startswith(complaint)
    assert mend == f"What to do: `{named} --help` shows how it is used"


def test_the_command_tells_its_release(command: Command) -> None:
    hatch = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]
    assert f'VERSION = "{command("--version").out.split()[1]}"' in (ROOT / hatch["version"]["path"]).read_text("utf-8")


@pytest.mark.parametrize("arguments", [["bases", "list"], ["agents", "show", "cook"]])
def test_json_of_another_program_is_no_answer(command: Command, backend: FakeBallast, arguments: list[str]) -> None:
    def foreign(_request: httpx2.Request, _match: re.Match[str]) -> httpx2.Response:
        return httpx2.Response(200, json={"keys": []})

    backend.on("GET .*", foreign)
    ran = command(*arguments)
    assert (ran.exit_code, ran.out) == (3, "")
    assert "answers, but not as a backend of Ballast does: 200 with application/json" in ran.err
