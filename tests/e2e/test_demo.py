"""`make run`, from start to Ctrl-C, as a stranger would use it."""

import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.demo.children import Child, ChildSpec
from tests.servers.places import pid_runs
from tests.servers.ports import accepts_connections, free_port
from tests.servers.services import ROOT, service_environment

_STOP_SECONDS = 3


@dataclass
class DemoRun:
    """A running demo and the ports it was given."""

    launcher: Child
    ports: tuple[int, ...]

    def wait_announced(self) -> None:
        self.launcher.wait_until(lambda: self.launcher.log().count("curl -sN") == 2, timeout_seconds=90)

    def value(self, name: str) -> str:
        """Return what the line `name=…` says."""
        found = re.search(rf"^{name}=(\S+)$", self.launcher.log(), re.MULTILINE)
        assert found, self.launcher.log()
        return found.group(1)

    def ask(self, number: int) -> str:
        """Run one of the printed commands and return what it prints."""
        commands = [line for line in self.launcher.log().splitlines() if line.startswith("curl ")]
        return subprocess.run(shlex.split(commands[number]), capture_output=True, text=True, check=True).stdout


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[DemoRun]:
    run = new_run(tmp_path)
    run.launcher.start()
    yield run
    run.launcher.kill()


def new_run(directory: Path) -> DemoRun:
    names = ("BACKEND_PORT", "CHAT_SHELL_GRPC_PORT", "CHAT_SHELL_HTTP_PORT")
    ports = tuple(free_port() for _ in names)
    settings = dict(zip(names, map(str, ports), strict=True))
    settings["BACKEND_DATABASE_URL"] = f"sqlite+aiosqlite:///{directory}/ballast.db"
    command = (sys.executable, "-m", "deploy.demo.run", str(directory / "var"))
    return DemoRun(
        Child(ChildSpec("demo", command, service_environment(settings), ROOT, directory / "demo.log")), ports
    )


def child_pids(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [line.split() for line in listed.splitlines()]
    return [int(child) for child, parent in pairs if int(parent) == pid]


def test_a_stranger_gets_an_answer_with_a_citation_and_leaves_nothing_behind(demo: DemoRun):
    demo.wait_announced()
    answer = demo.ask(0)
    assert "event: response.completed" in answer
    assert answer.rstrip().endswith("data: [DONE]")
    assert '"filename":"on-call.md"' in answer.replace('": "', '":"')
    assert "five minutes" in answer

    restricted = demo.ask(1)
    assert "event: response.completed" in restricted
    assert "0.62" not in restricted
    assert "file_citation" not in restricted

    children = child_pids(demo.launcher.pid)
    assert len(children) == 3
    assert demo.launcher.stop(number=signal.SIGINT, timeout_seconds=_STOP_SECONDS) == 0
    assert not [pid for pid in children if pid_runs(pid)]
    assert not [port for port in demo.ports if accepts_connections(port)]


def test_it_runs_again_on_its_own_leftovers_with_the_same_keys(demo: DemoRun):
    demo.wait_announced()
    before = {name: demo.value(name) for name in ("BACKEND_URL", "USER_KEY", "RESTRICTED_KEY")}
    commands = [line for line in demo.launcher.log().splitlines() if line.startswith("curl ")]
    assert demo.launcher.stop(number=signal.SIGTERM, timeout_seconds=_STOP_SECONDS) == 0
    demo.launcher.spec.log_path.unlink()

    demo.launcher.start()
    demo.wait_announced()
    assert {name: demo.value(name) for name in before} == before
    assert [line for line in demo.launcher.log().splitlines() if line.startswith("curl ")] == commands


def test_children_die_with_a_killed_launcher(demo: DemoRun):
    demo.wait_announced()
    children = child_pids(demo.launcher.pid)
    assert children
    demo.launcher.kill()
    while [pid for pid in children if pid_runs(pid)]:
        time.sleep(0.02)
