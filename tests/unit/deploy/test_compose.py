"""Compose: the file fits the images and the settings, and its guide fills in all that it asks for."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from backend.settings import Settings as BackendSettings
from chat_shell.settings import Settings as ChatShellSettings
from shared.environment import read_settings

ROOT = Path(__file__).parents[3]
FILE, EXAMPLE = ROOT / "deploy" / "compose.yaml", ROOT / "deploy" / "compose.env.example"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["services"]
OWN = {"backend": BackendSettings, "chat_shell": ChatShellSettings}
VARIABLE = re.compile(r"\$\{([A-Z_]+)(:\?[^}]*|:-)?\}")


def filled_in(folder: Path) -> dict[str, str]:
    """Run the first commands of the guide but for Docker's, and return the file of settings that they write."""
    guide = (ROOT / "docs" / "compose.md").read_text(encoding="utf-8")
    commands = re.findall(r"```sh\n(.*?)^docker compose", guide, re.DOTALL | re.MULTILINE)[0]
    (folder / "deploy").mkdir()
    shutil.copy(EXAMPLE, folder / "deploy")
    subprocess.run(["sh", "-euc", commands], cwd=folder, check=True)
    written = folder / "deploy" / "compose.env"
    assert written.stat().st_mode & 0o077 == 0, "others may read the secrets"
    lines = written.read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def environment(service: str, given: dict[str, str]) -> dict[str, str]:
    """Return what a container of a service gets, as Compose fills it in."""
    wanted: dict[str, str] = SERVICES[service]["environment"]
    return {name: VARIABLE.sub(lambda found: given.get(found[1], ""), value) for name, value in wanted.items()}


@pytest.mark.parametrize("service", OWN)
def test_both_services_start_with_what_the_guide_fills_in(service: str, tmp_path: Path) -> None:
    given = filled_in(tmp_path)
    asked: dict[str, str] = dict(VARIABLE.findall(FILE.read_text(encoding="utf-8")))
    assert set(asked) == set(given)
    assert [name for name, form in asked.items() if form.startswith(":?") and not given[name]] == []
    assert len({given[name] for name in ("POSTGRES_PASSWORD", "BACKEND_ADMIN_KEY", "BACKEND_SECRET")}) == 3
    settings = read_settings(OWN[service], environment(service, given))
    assert f"127.0.0.1:{settings.admin_port}/readyz" in SERVICES[service]["healthcheck"]["test"][-1]


def test_services_find_each_other_and_their_stores(tmp_path: Path) -> None:
    given = filled_in(tmp_path)
    backend, chat_shell = (environment(service, given) for service in OWN)
    found = read_settings(ChatShellSettings, chat_shell)
    assert backend["BACKEND_CHAT_SHELL_URL"] == f"grpc://chat_shell:{found.grpc_port}"
    assert chat_shell["CHAT_SHELL_BACKEND_URL"] == f"http://backend:{read_settings(BackendSettings, backend).port}"
    assert "@postgres:5432/" in backend["BACKEND_DATABASE_URL"]
    assert backend["BACKEND_REDIS_URL"].startswith("redis://valkey:6379")
    assert environment("migrate", given)["BACKEND_DATABASE_URL"] == backend["BACKEND_DATABASE_URL"]


@pytest.mark.parametrize("service", OWN)
def test_services_have_no_privilege_and_write_to_one_place(service: str) -> None:
    found = SERVICES[service]
    assert found["read_only"] is True
    assert found["cap_drop"] == ["ALL"]
    assert found["security_opt"] == ["no-new-privileges:true"]
    assert found["tmpfs"] == ["/tmp"]
    assert not {"privileged", "cap_add", "user", "network_mode", "pid"} & set(found)
    published = [port for port in found.get("ports", ()) if not port.startswith("127.0.0.1:")]
    assert published == []


def test_the_health_check_is_a_program_that_the_image_has() -> None:
    """It is run here against nobody, and has to say so by its exit code."""
    _, program, *arguments = SERVICES["backend"]["healthcheck"]["test"]
    assert program == "python"
    nowhere = [argument.replace("127.0.0.1:9000", "127.0.0.1:1") for argument in arguments]
    environ = {"PATH": os.environ["PATH"]}
    done = subprocess.run(["python3", *nowhere], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "URLError" in done.stderr
