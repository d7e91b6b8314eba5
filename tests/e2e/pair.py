"""The two real services with a recording fake model behind them, as child processes on free ports."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx2
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI

from tests.fakes.model_server import FakeModelControl
from tests.patience import PATIENCE_SECONDS
from tests.servers.ports import free_port
from tests.servers.services import Launch, RunningService

ADMIN_KEY = "admin-key-of-the-tests"
SERVICE_TOKEN = "service-token-of-the-tests"
SECRET = "secret-of-the-tests"
MODEL = "fake-model"


@dataclass
class Pair:
    """Both services and the fake model; `client(user)` speaks to them as that user."""

    backend: RunningService
    chat_shell: RunningService
    model_server: RunningService
    backend_url: str
    chat_shell_http_url: str
    chat_shell_grpc_target: str
    model_url: str
    keys: dict[tuple[str, str, str], str] = field(default_factory=dict[tuple[str, str, str], str])

    def key(self, user_id: str, role: str = "user", tenant: str = "default") -> str:
        """Return a key of this user, made through the API at the first call."""
        wanted = (user_id, role, tenant)
        if wanted not in self.keys:
            body = {"user_id": user_id, "role": role, "tenant": tenant}
            with self.http(ADMIN_KEY) as admin:
                answer = admin.post("/v1/api_keys", json=body)
            assert answer.status_code == 201, answer.text
            self.keys[wanted] = answer.json()["key"]
        return self.keys[wanted]

    def http(self, key: str) -> httpx2.Client:
        """Return a bare HTTP client, to be used in a `with`."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx2.Client(base_url=self.backend_url, headers=headers, timeout=PATIENCE_SECONDS, verify=False)

    async def metrics(self) -> tuple[str, str]:
        """Return the figures of the backend, and those of chat_shell."""
        asked = ((self.backend_url, ADMIN_KEY), (self.chat_shell_http_url, SERVICE_TOKEN))
        async with httpx2.AsyncClient(timeout=PATIENCE_SECONDS, trust_env=False, verify=False) as client:
            of_backend, of_chat_shell = [
                (await client.get(f"{url}/metrics", headers={"Authorization": f"Bearer {key}"})).text
                for url, key in asked
            ]
        return of_backend, of_chat_shell

    def client(self, user_id: str = "ann", *, max_retries: int = 0) -> OpenAI:
        """Return the official client, to be used in a `with`; it repeats no call unless asked to."""
        http = DefaultHttpxClient(verify=False)
        url = f"{self.backend_url}/v1"
        return OpenAI(base_url=url, api_key=self.key(user_id), max_retries=max_retries, http_client=http)

    def async_client(self, user_id: str = "ann") -> AsyncOpenAI:
        """Return the official asynchronous client, to be used in an `async with`."""
        http = DefaultAsyncHttpxClient(verify=False)
        return AsyncOpenAI(
            base_url=f"{self.backend_url}/v1", api_key=self.key(user_id), max_retries=0, http_client=http
        )

    def control(self) -> FakeModelControl:
        """Return the fake model's control."""
        return FakeModelControl(self.model_url)

    @asynccontextmanager
    async def fresh_model(self) -> AsyncGenerator[FakeModelControl]:
        """Open the fake model's control, with nothing left in it of earlier tests."""
        async with self.control() as control:
            await control.reset()
            yield control

    def wait_ready(self) -> None:
        """Return when all three are ready."""
        for service in (self.model_server, self.chat_shell, self.backend):
            service.wait_ready()


@dataclass(frozen=True)
class PairOptions:
    """How a pair differs from the default: SQLite, events in memory, gRPC between the two."""

    over_http: bool = False
    model_module: str = "tests.fakes.model_server"
    backend: Mapping[str, str] = field(default_factory=dict[str, str])
    chat_shell: Mapping[str, str] = field(default_factory=dict[str, str])
    tls: bool = False
    reach: Callable[[int], int] = lambda port: port
    """Returns the port by which the other service reaches a port: that of a proxy, or the same one."""


def start_model(
    launch: Launch, directory: Path, name: str = MODEL, module: str = "tests.fakes.model_server"
) -> tuple[RunningService, str]:
    """Start a fake model, and return it with its address; whoever asks it waits until it is ready."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1"
    arguments = ("--port", str(port), "--model", name)
    return launch(module, *arguments, settings={}, directory=directory, ready_url=f"{url}/models"), url


def start_pair(launch: Launch, directory: Path, options: PairOptions | None = None) -> Pair:
    """Start fake model, chat_shell and backend, and wait until they are ready."""
    chosen = options or PairOptions()
    backend_port, grpc_port, http_port, nobody = (free_port() for _ in range(4))
    web, rpc = ("https", "grpcs") if chosen.tls else ("http", "grpc")
    backend_url, http_url = f"{web}://127.0.0.1:{backend_port}", f"{web}://127.0.0.1:{http_port}"
    shell_port = chosen.reach(http_port if chosen.over_http else grpc_port)
    directory.mkdir(parents=True, exist_ok=True)
    model_server, model_url = start_model(launch, directory, module=chosen.model_module)
    chat_shell = launch(
        "chat_shell",
        settings={
            "CHAT_SHELL_GRPC_PORT": str(grpc_port),
            "CHAT_SHELL_HTTP_PORT": str(http_port),
            "CHAT_SHELL_BACKEND_URL": f"{web}://127.0.0.1:{chosen.reach(backend_port)}",
            "CHAT_SHELL_MODEL": MODEL,
            "CHAT_SHELL_MODEL_BASE_URL": model_url,
            "CHAT_SHELL_MODEL_API_KEY": "credential-of-the-provider",
            # who wants a secondary model sets one: it must not answer from the main model's script
            "CHAT_SHELL_SAFE_SUMMARY_BASE_URL": f"http://127.0.0.1:{nobody}/v1",
            "SERVICE_TOKEN": SERVICE_TOKEN,
            **chosen.chat_shell,
        },
        directory=directory,
        ready_url=f"{http_url}/readyz",
    )
    backend = launch(
        "backend",
        settings={
            "BACKEND_PORT": str(backend_port),
            "BACKEND_CHAT_SHELL_URL": f"{web if chosen.over_http else rpc}://127.0.0.1:{shell_port}",
            "BACKEND_ADMIN_KEY": ADMIN_KEY,
            "BACKEND_SECRET": SECRET,
            "SERVICE_TOKEN": SERVICE_TOKEN,
            **chosen.backend,
        },
        directory=directory,
        ready_url=f"{backend_url}/readyz",
    )
    pair = Pair(backend, chat_shell, model_server, backend_url, http_url, f"127.0.0.1:{grpc_port}", model_url)
    pair.wait_ready()
    return pair


def start_replica(launch: Launch, directory: Path, pair: Pair, **changes: str) -> Pair:
    """Start a second backend on all that the pair's first one uses, but for changes, and wait until it is ready."""
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    kept = {
        name: value
        for name, value in pair.backend.spec.environment.items()
        if name.startswith("BACKEND_") or name == "SERVICE_TOKEN"
    }
    settings = {**kept, **changes, "BACKEND_PORT": str(port)}
    backend = launch("backend", settings=settings, directory=directory, ready_url=f"{url}/readyz")
    backend.wait_ready()
    return replace(pair, backend=backend, backend_url=url)


def lone_backend(launch: Launch, directory: Path, **settings: str) -> Pair:
    """Start a backend with nobody behind it, and wait until it is ready; the pair's other parts are the backend too."""
    pair = starting_backend(launch, directory, **settings)
    pair.backend.wait_ready()
    return pair


def starting_backend(launch: Launch, directory: Path, **settings: str) -> Pair:
    """Start a backend with nobody behind it, and return before it is ready."""
    port, nobody = free_port(), free_port()
    url = f"{'https' if 'BACKEND_TLS_CERT_FILE' in settings else 'http'}://127.0.0.1:{port}"
    directory.mkdir(parents=True, exist_ok=True)
    needed = {
        "BACKEND_PORT": str(port),
        "BACKEND_CHAT_SHELL_URL": f"grpc://127.0.0.1:{nobody}",
        "BACKEND_ADMIN_KEY": ADMIN_KEY,
        "BACKEND_SECRET": SECRET,
        "SERVICE_TOKEN": SERVICE_TOKEN,
    }
    backend = launch("backend", settings=needed | settings, directory=directory, ready_url=f"{url}/readyz")
    return Pair(backend, backend, backend, url, url, f"127.0.0.1:{nobody}", url)


def lone_chat_shell(launch: Launch, directory: Path, pair: Pair, **settings: str) -> Pair:
    """Start a second chat_shell on the pair's fake model and backend, and wait until it is ready."""
    grpc_port, http_port = free_port(), free_port()
    url = f"http://127.0.0.1:{http_port}"
    needed = {
        "CHAT_SHELL_GRPC_PORT": str(grpc_port),
        "CHAT_SHELL_HTTP_PORT": str(http_port),
        "CHAT_SHELL_BACKEND_URL": pair.backend_url,
        "CHAT_SHELL_MODEL": MODEL,
        "CHAT_SHELL_MODEL_BASE_URL": pair.model_url,
        "CHAT_SHELL_MODEL_API_KEY": "credential-of-the-provider",
        "SERVICE_TOKEN": SERVICE_TOKEN,
    }
    chat_shell = launch("chat_shell", settings=needed | settings, directory=directory, ready_url=f"{url}/readyz")
    chat_shell.wait_ready()
    target = f"127.0.0.1:{grpc_port}"
    return replace(pair, chat_shell=chat_shell, chat_shell_http_url=url, chat_shell_grpc_target=target)
