"""`make run`, from start to Ctrl-C, as a stranger would use it."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

import httpx2
import pytest

from deploy.demo.children import Child, ChildSpec
from deploy.demo.local_embedder import MODEL, is_installed
from requirements.install import write_launchers
from tests.examples import first_of
from tests.patience import PATIENCE_SECONDS
from tests.servers.ports import accepts_connections, free_port
from tests.servers.services import ROOT, service_environment


@dataclass
class DemoRun:
    """A running demo and the ports it was given."""

    launcher: Child
    ports: tuple[int, ...]
    var: Path

    def logs(self, ending: str) -> dict[str, str]:
        """Return the logs of the services, by the services' names."""
        return {path.name.removesuffix(ending): path.read_text() for path in self.var.glob(f"*/*{ending}")}

    def wait_announced(self) -> None:
        self.launcher.wait_until(lambda: len(self.commands()) == 2, timeout_seconds=PATIENCE_SECONDS)

    def value(self, name: str) -> str:
        """Return what the line `name=…` says."""
        found = re.search(rf"^{name}=(\S+)$", self.launcher.log(), re.MULTILINE)
        assert found, self.launcher.log()
        return found.group(1)

    def commands(self) -> list[str]:
        """Return the printed curl lines."""
        return [line for line in self.launcher.log().splitlines() if line.startswith("curl ")]

    def ask(self, number: int) -> str:
        """Send what one of the printed commands would send, and return the whole answer."""
        with self.asking(number) as lines:
            return "\n".join(lines)

    @contextmanager
    def asking(self, number: int) -> Generator[Iterator[str]]:
        """Send what one of the printed commands would send, and lend the lines of the answer as they come."""
        _, _, url, _, authorization, _, content_type, _, body = shlex.split(self.commands()[number])
        headers = dict(header.split(": ") for header in (authorization, content_type))
        with (
            httpx2.Client(timeout=PATIENCE_SECONDS, trust_env=False, verify=False) as client,
            client.stream("POST", url, headers=headers, content=body) as answer,
        ):
            assert answer.status_code == 200, answer.read()
            yield answer.iter_lines()

    def first_steps(self, directory: Path) -> list[str]:
        """Run the printed commands, which find the demo, over a folder of one's own; return what both answers cite."""
        (directory / "your-folder").mkdir()
        (directory / "your-folder" / "kettle.md").write_text("# Kettle\n\nThe kettle is descaled each month.\n")
        write_launchers(ROOT, Path(sys.executable), directory)
        lines = self.launcher.log().splitlines()
        first = next(place for place, line in enumerate(lines) if line.startswith("export BALLAST_URL="))
        steps = lines[first + 1 : first + 4]
        cited: list[str] = []
        for step in steps:
            own = f"{directory}/{step[step.index('ballast ') :]}".replace("…", "the kettle")
            environ = {"PATH": os.environ["PATH"], "HOME": str(directory)}
            done = subprocess.run(
                ["sh", "-euc", own], cwd=directory, env=environ, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            cited += re.findall(r"^\[\d+\] (\S+)$", done.stdout, re.MULTILINE)[:1]
        return cited

    def vector(self, text: str) -> list[float]:
        """Return the vector that the demo's embedder makes of a text."""
        headers = {"Authorization": f"Bearer {self.value('USER_KEY')}"}
        url = f"{self.value('BACKEND_URL')}/v1/embeddings"
        answer = httpx2.post(url, json={"model": MODEL, "input": text}, headers=headers, timeout=60, trust_env=False)
        assert answer.status_code == 200, answer.text
        numbers: list[float] = answer.json()["data"][0]["embedding"]
        return numbers

    def open_ports(self) -> list[int]:
        """Return the ports of its four listeners that take connections."""
        model_port = int(self.value("MODEL_URL").rpartition(":")[2].removesuffix("/v1"))
        return [port for port in (*self.ports, model_port) if accepts_connections(port)]


EMBEDDER_AWAY = {"BACKEND_EMBEDDING_BASE_URL": "http://127.0.0.1:1/v1", "BACKEND_EMBEDDING_MODEL": "away"}
"""An embedder of one's own that does not answer: the one of the demo takes more time than all else that a run does."""


@pytest.fixture
def settings() -> dict[str, str]:
    return {}


@pytest.fixture
def demo(tmp_path: Path, settings: dict[str, str]) -> Iterator[DemoRun]:
    run = new_run(tmp_path, settings)
    run.launcher.start()
    yield run
    run.launcher.kill()


def new_run(directory: Path, more_settings: dict[str, str]) -> DemoRun:
    names = ("BACKEND_PORT", "CHAT_SHELL_GRPC_PORT", "CHAT_SHELL_HTTP_PORT")
    ports = tuple(free_port() for _ in names)
    settings: dict[str, str] = {name: str(port) for name, port in zip(names, ports, strict=True)}
    settings["BACKEND_DATABASE_URL"] = f"sqlite+aiosqlite:///{directory}/ballast.db"
    settings |= dict.fromkeys(("http_proxy", "https_proxy"), f"http://127.0.0.1:{free_port()}")  # both lead nowhere
    command = (sys.executable, "-m", "deploy.demo.run", str(directory / "var"))
    return DemoRun(
        Child(ChildSpec("demo", command, service_environment(settings | more_settings), ROOT, directory / "demo.log")),
        ports,
        directory / "var",
    )


@pytest.mark.parametrize("settings", first_of(EMBEDDER_AWAY, {}), ids=["by words", "by meaning"])
def test_a_stranger_gets_an_answer_with_a_citation_and_leaves_nothing_behind(
    demo: DemoRun, tmp_path: Path, settings: dict[str, str]
):
    demo.wait_announced()
    answer = demo.ask(0)
    assert "event: response.completed" in answer
    assert answer.rstrip().endswith("data: [DONE]")
    assert '"filename":"on-call.md"' in answer.replace('": "', '":"')
    assert "five minutes" in answer

    if is_installed() and not settings:
        assert len(demo.vector("How soon must a page be acknowledged?")) == 384
    told = (
        "Searches (rank|go) by words.* and by meaning" if is_installed() or settings else "Searches are by words only:"
    )
    demo.launcher.wait_until(lambda: re.search(told, demo.launcher.log()) is not None, timeout_seconds=PATIENCE_SECONDS)

    demo.launcher.wait_until(lambda: "\nOpen http" in demo.launcher.log(), timeout_seconds=PATIENCE_SECONDS)
    address, _, keys = demo.launcher.log().splitlines()[-1].removeprefix("Open ").partition("#")
    assert address == f"{demo.value('BACKEND_URL')}/"
    assert dict(parse_qsl(keys))["user"] == demo.value("USER_KEY")

    assert demo.first_steps(tmp_path) == ["on-call.md", "kettle.md"]

    restricted = demo.ask(1)
    assert "event: response.completed" in restricted
    assert "From a summary of the restricted knowledge base" in restricted
    assert "0.62 euros" not in restricted
    assert "file_citation" not in restricted

    assert len(demo.open_ports()) == 4
    with demo.asking(0) as lines:
        assert any('"response.output_text.delta"' in line for line in lines)
        demo.launcher.send(signal.SIGINT)
        rest = list(lines)
    # The model and chat_shell were there until the turn had ended, with all of its words or those of its last second.
    assert "data: [DONE]" in rest
    assert not any('"type":"response.failed"' in line.replace(" ", "") for line in rest)
    assert demo.launcher.wait_or_kill(PATIENCE_SECONDS) == 0
    assert demo.open_ports() == []


@pytest.mark.whole
def test_it_runs_again_on_its_own_leftovers_with_the_same_keys(demo: DemoRun):
    demo.wait_announced()
    before = {name: demo.value(name) for name in ("BACKEND_URL", "USER_KEY", "RESTRICTED_KEY")}
    commands = demo.commands()
    assert demo.launcher.stop(number=signal.SIGTERM, timeout_seconds=PATIENCE_SECONDS) == 0
    demo.launcher.spec.log_path.unlink()
    logs = demo.logs(".log")
    embedder = {"local_embedder"} if is_installed() else set[str]()
    assert set(logs) == {"backend", "chat_shell", "model"} | embedder

    demo.launcher.start()
    demo.wait_announced()
    assert {name: demo.value(name) for name in before} == before
    assert demo.commands() == commands
    assert demo.logs(".log.1") == logs


def test_children_die_with_a_killed_launcher(demo: DemoRun):
    demo.wait_announced()
    assert demo.open_ports()
    demo.launcher.kill()
    while demo.open_ports():
        time.sleep(0.02)
