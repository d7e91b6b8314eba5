"""What `make run` would start under which settings."""

import stat
from pathlib import Path

import pytest
import yaml

from deploy.demo.plan import FreePorts, Plan, plan

PORTS = FreePorts(model=9999, metrics=9998)


def environment_of(planned: Plan, name: str) -> dict[str, str]:
    (start,) = (start for start in planned.starts if start.child.name == name)
    return dict(start.child.environment)


def test_the_services_find_each_other_by_default(tmp_path: Path):
    planned = plan({}, tmp_path, PORTS)
    assert [start.child.name for start in planned.starts] == ["deploy.demo.model", "chat_shell", "backend"]
    assert planned.backend_url == "http://127.0.0.1:8000"
    backend, chat_shell = environment_of(planned, "backend"), environment_of(planned, "chat_shell")
    assert backend["BACKEND_CHAT_SHELL_URL"] == "grpc://127.0.0.1:50051"
    assert chat_shell["CHAT_SHELL_BACKEND_URL"] == "http://127.0.0.1:8000"
    assert backend["SERVICE_TOKEN"] == chat_shell["SERVICE_TOKEN"]


def test_ports_of_the_environment_are_followed_everywhere(tmp_path: Path):
    ports = {"BACKEND_PORT": "9000", "CHAT_SHELL_GRPC_PORT": "9001", "CHAT_SHELL_HTTP_PORT": "9002"}
    planned = plan({**ports, "BACKEND_HOST": "0.0.0.0"}, tmp_path, PORTS)
    assert planned.backend_url == "http://127.0.0.1:9000"
    assert environment_of(planned, "backend")["BACKEND_CHAT_SHELL_URL"] == "grpc://127.0.0.1:9001"
    assert environment_of(planned, "backend")["BACKEND_HOST"] == "0.0.0.0"
    assert [start.ready_url for start in planned.starts][1:] == [
        "http://127.0.0.1:9002/readyz",
        "http://127.0.0.1:9000/readyz",
    ]
    assert {one.setting: one.address for one in planned.listeners} == {
        name: f"127.0.0.1:{port}" for name, port in ports.items()
    }


def test_a_given_server_is_kept(tmp_path: Path):
    planned = plan({"BACKEND_CHAT_SHELL_URL": "http://127.0.0.1:8001"}, tmp_path, PORTS)
    assert environment_of(planned, "backend")["BACKEND_CHAT_SHELL_URL"] == "http://127.0.0.1:8001"


def test_a_configured_model_replaces_the_demo_model(tmp_path: Path):
    for settings in (
        {"CHAT_SHELL_MODEL": "gpt-5"},
        {"CHAT_SHELL_MODEL_BASE_URL": "https://example.com/v1"},
        {"CHAT_SHELL_MODELS_FILE": "models.yaml"},
    ):
        planned = plan(settings, tmp_path, PORTS)
        assert [start.child.name for start in planned.starts] == ["chat_shell", "backend"]
        assert planned.demo_model_url is None


def test_the_demo_model_is_where_chat_shell_looks_for_it(tmp_path: Path):
    planned = plan({}, tmp_path, PORTS)
    listed = Path(environment_of(planned, "chat_shell")["CHAT_SHELL_MODELS_FILE"])
    (model,) = yaml.safe_load(listed.read_text(encoding="utf-8"))["models"]
    base_url = model["base_url"]
    assert planned.starts[0].ready_url == f"{base_url}/models"
    assert base_url == planned.demo_model_url == "http://127.0.0.1:9999/v1"
    assert "9999" in planned.starts[0].child.command


def test_secrets_are_made_once_and_only_their_owner_reads_them(tmp_path: Path):
    first, second = plan({}, tmp_path, PORTS), plan({}, tmp_path, PORTS)
    assert first.admin_key == second.admin_key
    secrets = [file for file in first.directory.iterdir() if file.is_file() and file.suffix != ".yaml"]
    assert {file.name for file in secrets} == {"service_token", "backend_secret", "backend_admin_key"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in secrets} == {0o600}
    assert len({file.read_text() for file in secrets}) == 3


def test_secrets_of_the_operator_win(tmp_path: Path):
    key_file = tmp_path / "key"
    key_file.write_text("of a file\n")
    planned = plan({"SERVICE_TOKEN": "given", "BACKEND_ADMIN_KEY_FILE": str(key_file)}, tmp_path, PORTS)
    assert planned.admin_key == "of a file"
    assert environment_of(planned, "chat_shell")["SERVICE_TOKEN"] == "given"


def test_each_database_has_keys_of_its_own(tmp_path: Path):
    urls = ("", "sqlite+aiosqlite:///var/a.db", "sqlite+aiosqlite:///var/b.db")
    directories = {plan({"BACKEND_DATABASE_URL": url}, tmp_path, PORTS).directory for url in urls}
    assert len(directories) == 3


@pytest.mark.parametrize(("given", "port"), [({}, "9998"), ({"BACKEND_ADMIN_PORT": "9100"}, "9100")])
def test_the_public_port_has_no_open_metrics(tmp_path: Path, given: dict[str, str], port: str):
    planned = plan(given, tmp_path, PORTS)
    assert environment_of(planned, "backend")["BACKEND_ADMIN_PORT"] == port
    assert planned.metrics_url == f"http://127.0.0.1:{port}/metrics"
