"""How commands end that nobody reads, and those that have a defect: never with a traceback."""

import re
import subprocess
import sys
from pathlib import Path

import httpx2

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
