"""What the tests of the command share: a fake backend, and a way to run commands against it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from cli.app import run_command
from tests.fakes.ballast_api import KEY, FakeBallast


@dataclass(frozen=True)
class Ran:
    """How a command has ended, and what it has written."""

    exit_code: int
    out: str
    err: str

    @property
    def lines_of_json(self) -> list[Any]:
        return [orjson.loads(line) for line in self.out.splitlines()]


Command = Callable[..., Ran]


@pytest.fixture
def backend() -> FakeBallast:
    return FakeBallast()


@pytest.fixture
def command(backend: FakeBallast, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command with the key of Ann, unless the environment is changed."""

    def run(*arguments: str, **changes: str) -> Ran:
        environ = {"BALLAST_KEY": KEY, "XDG_STATE_HOME": str(tmp_path / "state"), **changes}
        exit_code = run_command(arguments, environ, backend.transport)
        written = capsys.readouterr()
        return Ran(exit_code, written.out, written.err)

    return run
