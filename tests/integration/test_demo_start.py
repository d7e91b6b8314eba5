"""`make run` where it cannot start: it says why, and touches nothing."""

import os
import socket
import sys
from pathlib import Path

import pytest

from backend.embeddings.domain import TextKind
from backend.settings import Settings
from deploy.demo.children import Child, ChildSpec
from deploy.demo.folder import locked_folder
from deploy.demo.plan import FreePorts, plan
from shared.environment import read_settings
from tests.patience import PATIENCE_SECONDS
from tests.servers.ports import free_port
from tests.servers.services import ROOT, service_environment

_PORTS = ("BACKEND_PORT", "CHAT_SHELL_GRPC_PORT", "CHAT_SHELL_HTTP_PORT")


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    """Settings of a demo with a database and ports of its own."""
    ports = {name: str(free_port()) for name in _PORTS}
    return ports | {"BACKEND_DATABASE_URL": f"sqlite+aiosqlite:///{tmp_path}/ballast.db"}


def refusal(directory: Path, settings: dict[str, str]) -> str:
    """Start a demo that cannot, and return what it says."""
    command = (sys.executable, "-m", "deploy.demo.run", str(directory / "var"))
    launcher = Child(ChildSpec("demo", command, service_environment(settings), ROOT, directory / "demo.log"))
    launcher.start()
    try:
        launcher.wait_until(lambda: launcher.exit_code is not None, timeout_seconds=PATIENCE_SECONDS)
    finally:
        launcher.kill()
    assert launcher.exit_code == 1
    return launcher.log()


def test_an_embedder_of_the_machine_is_configured_and_sees_no_secret(tmp_path: Path, settings: dict[str, str]):
    secrets = {"SERVICE_TOKEN": "t" * 20, "BACKEND_SECRET": "s" * 20, "PATH": "/bin"}
    planned = plan(settings | secrets, tmp_path / "var", FreePorts(free_port(), free_port(), 4711))
    backend = planned.starts[-1].child.environment
    assert planned.embedder is not None
    assert planned.embedder.child.environment == {"PATH": "/bin", "PYTHONUNBUFFERED": "1"}
    assert backend["BACKEND_EMBEDDING_BASE_URL"] == "http://127.0.0.1:4711/v1"
    read = read_settings(Settings, {name: value for name, value in backend.items() if name != "PATH"})
    assert read.embedder is not None
    assert read.embedder.configured.form_of(TextKind.QUERY).input_type == "query"


@pytest.mark.parametrize("given", [{}, {"BACKEND_EMBEDDING_BASE_URL": "http://other/v1"}])
def test_no_embedder_is_started_where_none_is_installed_or_another_is_set(
    tmp_path: Path, settings: dict[str, str], given: dict[str, str]
):
    planned = plan(settings | given, tmp_path / "var", FreePorts(free_port(), free_port(), 4711 if given else None))
    backend = planned.starts[-1].child.environment
    assert planned.embedder is None
    assert {name: value for name, value in backend.items() if "EMBEDDING" in name} == given


def test_a_second_demo_in_a_folder_names_the_first(tmp_path: Path, settings: dict[str, str]):
    with locked_folder(tmp_path / "var"):
        said = refusal(tmp_path, settings)
    assert said == (
        f"The demo cannot start: a demo already runs in this folder (process {os.getpid()}); stop it first\n"
    )
    assert [file.name for file in (tmp_path / "var").iterdir()] == ["demo.lock"]


@pytest.mark.parametrize("name", _PORTS)
def test_a_taken_port_is_named_with_its_setting_and_no_log_is_touched(
    tmp_path: Path, settings: dict[str, str], name: str
):
    directory = plan(settings, tmp_path / "var", FreePorts(free_port(), free_port())).directory
    logs = [directory / f"{service}.log" for service in ("backend", "chat_shell", "model")]
    for log in logs:
        log.write_text("of the last run")
    with socket.create_server(("127.0.0.1", int(settings[name]))):
        said = refusal(tmp_path, settings)
    assert said == (
        f"The demo cannot start: another program listens at 127.0.0.1:{settings[name]}; "
        f"stop it, or choose other ports: {name}=… make run\n"
    )
    assert {file for file in directory.iterdir() if ".log" in file.name} == set(logs)
    assert {log.read_text() for log in logs} == {"of the last run"}
