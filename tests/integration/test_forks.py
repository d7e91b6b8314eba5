"""Forked starts are what `python -m` would have started, and end with whoever asked for them."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from deploy.demo.children import Child, ChildSpec, Started
from tests.patience import PATIENCE_SECONDS
from tests.servers.forks import ForkServer, ForkServers
from tests.servers.services import ROOT, Launch, service_environment

_SHOWN = """
import json, os, sys, time
print(json.dumps({
    "name": __name__, "arguments": sys.argv[1:], "setting": os.environ.get("SERVICE_OF"), "place": os.getcwd(),
    "path": sys.path[0], "input": sys.stdin.read(), "group": os.getpgid(0) == os.getpid(),
}), flush=True)
match sys.argv[1]:
    case "fail": raise ValueError("no such luck")
    case "stay": time.sleep(600)
    case code: sys.exit(int(code))
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ForkServer]:
    (tmp_path / "shown.py").write_text(_SHOWN)
    server = ForkServer(("json",), service_environment({}), tmp_path)
    yield server
    server.close()


class _Forked(Child):
    def __init__(self, server: ForkServer, place: Path, *arguments: str) -> None:
        super().__init__(ChildSpec("shown", [], service_environment({"SERVICE_OF": "ann"}), place, place / "log"))
        self._given = (server, ("shown", *arguments))

    def _spawn(self) -> Started:
        server, command = self._given
        return server.start(command, self.spec)

    def shown(self) -> dict[str, object]:
        self.wait_until(lambda: self.spec.log_path.exists() and self.log().endswith("\n"), 60)
        return json.loads(self.log())


def test_a_fork_has_its_own_arguments_settings_place_and_group(server: ForkServer, tmp_path: Path) -> None:
    forked = _Forked(server, tmp_path, "3", "and more")
    forked.start()
    assert forked.wait_or_kill(PATIENCE_SECONDS) == 3
    place = str(tmp_path)
    expected = {"name": "__main__", "arguments": ["3", "and more"], "setting": "ann", "place": place, "path": place}
    assert forked.shown() == {**expected, "input": "", "group": True}


def test_a_fork_that_raises_ends_as_an_interpreter_does(server: ForkServer, tmp_path: Path) -> None:
    forked = _Forked(server, tmp_path, "fail")
    forked.start()
    assert forked.wait_or_kill(PATIENCE_SECONDS) == 1
    assert forked.log().endswith("ValueError: no such luck\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_fork_takes_signals_and_others_go_on(server: ForkServer, tmp_path: Path, number: signal.Signals) -> None:
    places = [tmp_path / name for name in ("one", "two")]
    for place in places:
        place.mkdir()
        (place / "shown.py").write_text(_SHOWN)
    one, two = (_Forked(server, place, "stay") for place in places)
    one.start()
    two.start()
    assert one.shown() and two.shown()
    assert one.stop(60, number) == -number
    assert two.exit_code is None
    two.kill()
    assert two.exit_code == -signal.SIGKILL
    one.start()  # the same server forks again
    assert one.exit_code is None
    one.kill()


OWN_INTERPRETER: list[tuple[str, Mapping[str, str]]] = [
    ("backend", {"PYTHONMALLOC": "debug"}),
    ("backend", {"HOME": "/elsewhere"}),
    ("http.server", {}),
]


@pytest.mark.parametrize(("module", "settings"), OWN_INTERPRETER)
def test_what_is_read_before_our_code_runs_takes_an_interpreter_of_its_own(
    forks: ForkServers, module: str, settings: dict[str, str]
) -> None:
    assert forks.serving((module,), service_environment(settings)) is None


def test_services_are_forked(launch: Launch, launch_anew: Launch, tmp_path: Path) -> None:
    """And those that are to be started anew are not."""
    settings = {"SERVICE_TOKEN": "too-short"}
    parents: list[str] = []
    for place, start in (("forked", launch), ("anew", launch_anew)):
        service = start("chat_shell", settings=settings, directory=tmp_path / place)
        parents.append(" ".join(psutil.Process(service.pid).parent().cmdline()))  # type: ignore[union-attr]
        assert service.wait_or_kill(PATIENCE_SECONDS) == 2
    assert "tests.servers.fork_server" in parents[0]
    assert "tests.servers.fork_server" not in parents[1]


_A_RUN = """
import sys, time
from pathlib import Path
from deploy.demo.children import ChildSpec
from tests.servers.forks import ForkServer
from tests.servers.services import service_environment

place = Path(sys.argv[1])
server = ForkServer(("json",), service_environment({}), place)
print(server.start(("shown", "stay"), ChildSpec("shown", [], service_environment({}), place, place / "log")).pid)
sys.stdout.flush()
time.sleep(600)
"""


def test_no_fork_outlives_a_killed_run(tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text(_SHOWN)
    command = [sys.executable, "-c", _A_RUN, str(tmp_path)]
    with subprocess.Popen(command, env=service_environment({}), cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        forked = psutil.Process(int(run.stdout.readline()))
        run.kill()
    psutil.wait_procs([forked], timeout=60)
    assert not forked.is_running()
