"""`make run` where it cannot start: it says why, and touches nothing."""

import os
import socket
import sys
from pathlib import Path

import pytest

from deploy.demo.children import Child, ChildSpec
from deploy.demo.folder import locked_folder
from deploy.demo.plan import plan
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
        launcher.wait_until(lambda: launcher.exit_code is not None, timeout_seconds=60)
    finally:
        launcher.kill()
    assert launcher.exit_code == 1
    return launcher.log()


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
    directory = plan(settings, tmp_path / "var", free_port()).directory
    logs = [directory / f"{service}.log" for service in ("backend", "chat_shell", "model")]
    for log in logs:
        log.write_text("of the last run")
    with socket.create_server(("127.0.0.1", int(settings[name]))):
        said = refusal(tmp_path, settings)
    assert said == (
        f"The demo cannot start: another program listens at 127.0.0.1:{settings[name]} ({name}); "
        "stop it, or choose another port with the setting behind it\n"
    )
    assert {file for file in directory.iterdir() if ".log" in file.name} == set(logs)
    assert {log.read_text() for log in logs} == {"of the last run"}
