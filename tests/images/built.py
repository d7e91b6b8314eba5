"""Both images hold what they should, and answer a first question on a root that they cannot write to.

`make images` runs it, as root on Linux, with Docker or what IMAGE_BUILDER names.
"""

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import httpx2
import pytest
import yaml

from tests.e2e.pair import ADMIN_KEY, MODEL, SECRET, SERVICE_TOKEN, start_model
from tests.fakes.model_server import FakeModelControl, Reply
from tests.images.builder import ROOT, build, inside, unpacked
from tests.servers.ports import free_port
from tests.servers.services import Launch

TARGETS = ("backend", "chat_shell")
PYTHON_PACKAGE = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Both images, unpacked."""
    return {target: unpacked(build(target), tmp_path_factory.mktemp(target)) for target in TARGETS}


@pytest.mark.parametrize("target", TARGETS)
def test_an_image_holds_its_own_service_and_nothing_that_installs(images: Mapping[str, Path], target: str) -> None:
    app, installed = images[target] / "app", images[target] / "opt" / "ballast"
    assert {path.name for path in app.iterdir()} == {"shared", "protos", target} | (
        {"var"} if target == "backend" else set()
    )
    assert not list(installed.glob("lib/python*/site-packages/pip"))
    assert not (images[target] / "opt" / "tools").exists()
    assert {path.stat().st_uid for path in app.iterdir()} == {10001}


@pytest.mark.parametrize("target", TARGETS)
def test_the_list_of_parts_names_every_locked_package_and_no_other(images: Mapping[str, Path], target: str) -> None:
    parts = json.loads((images[target] / "opt" / "ballast" / "sbom.cdx.json").read_text(encoding="utf-8"))
    lock = (ROOT / "requirements" / f"{target.replace('_', '-')}.txt").read_text(encoding="utf-8")
    locked = set(PYTHON_PACKAGE.findall(lock))
    listed = {one["name"].lower().replace("_", "-"): one["version"] for one in parts["components"]}
    assert parts["bomFormat"] == "CycloneDX"
    assert set(listed.items()) <= locked
    elsewhere = {name for name, version in locked if f"\n{name}=={version} ;" in lock}
    assert {name for name, _ in locked} - set(listed) <= elsewhere


def environments(model_url: str, stores: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
    ports = {name: str(free_port()) for name in ("http", "backend_admin", "grpc", "own_http", "chat_shell_admin")}
    return {
        "backend": {
            "BACKEND_PORT": ports["http"],
            "BACKEND_ADMIN_PORT": ports["backend_admin"],
            "BACKEND_CHAT_SHELL_URL": f"grpc://127.0.0.1:{ports['grpc']}",
            "BACKEND_ADMIN_KEY": ADMIN_KEY,
            "BACKEND_SECRET": SECRET,
            "SERVICE_TOKEN": SERVICE_TOKEN,
            **stores,
        },
        "chat_shell": {
            "CHAT_SHELL_GRPC_PORT": ports["grpc"],
            "CHAT_SHELL_HTTP_PORT": ports["own_http"],
            "CHAT_SHELL_ADMIN_PORT": ports["chat_shell_admin"],
            "CHAT_SHELL_BACKEND_URL": f"http://127.0.0.1:{ports['http']}",
            "CHAT_SHELL_MODEL": MODEL,
            "CHAT_SHELL_MODEL_BASE_URL": model_url,
            "CHAT_SHELL_MODEL_API_KEY": "credential-of-the-provider",
            "SERVICE_TOKEN": SERVICE_TOKEN,
        },
    }


def health_check(target: str, admin_port: str) -> list[str]:
    """Return the command by which Compose sees whether a service is healthy."""
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))["services"]
    return [
        re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{admin_port}", word)
        for word in services[target]["healthcheck"]["test"][1:]
    ]


def healthy(image: Path, target: str, environment: Mapping[str, str]) -> bool:
    check = health_check(target, environment[f"{target.upper()}_ADMIN_PORT"])
    return subprocess.run(inside(image, check, {}), check=False, capture_output=True).returncode == 0


async def until_healthy(image: Path, target: str, environment: Mapping[str, str]) -> None:
    while True:
        if healthy(image, target, environment):
            return
        await asyncio.sleep(0.2)


@pytest.fixture
def started() -> Iterator[ExitStack]:
    with ExitStack() as running:
        yield running


@asynccontextmanager
async def fake_model(launch: Launch, folder: Path) -> AsyncGenerator[str]:
    model, url = start_model(launch, folder)
    model.wait_ready()
    async with FakeModelControl(url) as control:
        await control.script(Reply(text=("Hello", ".")))
        yield url


async def test_the_pair_answers_a_first_question(
    images: Mapping[str, Path],
    launch: Launch,
    started: ExitStack,
    tmp_path: Path,
    empty_postgres_url: str,
    valkey_url: str,
) -> None:
    stores = {"BACKEND_DATABASE_URL": empty_postgres_url, "BACKEND_REDIS_URL": valkey_url}
    async with fake_model(launch, tmp_path) as model_url:
        settings = environments(model_url, stores)
        migrate = inside(images["backend"], ["python", "-m", "backend", "migrate"], stores)
        assert "has schema" in subprocess.run(migrate, check=True, capture_output=True, text=True).stdout
        assert not healthy(images["backend"], "backend", settings["backend"])
        for target in reversed(TARGETS):
            command = inside(images[target], ["python", "-m", target], settings[target])
            service = started.enter_context(subprocess.Popen(command))
            started.callback(service.terminate)
            await until_healthy(images[target], target, settings[target])
        address = f"http://127.0.0.1:{settings['backend']['BACKEND_PORT']}/v1/responses"
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {ADMIN_KEY}"}, timeout=60) as client:
            answer = await client.post(address, json={"input": "Say hello."})
    assert answer.status_code == 200, answer.text
    assert answer.json()["output"][-1]["content"][0]["text"] == "Hello."
