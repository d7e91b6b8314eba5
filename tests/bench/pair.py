"""The pair and the fast fake model as processes of the bench."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psutil

from tests.servers.ports import free_port
from tests.servers.services import RunningService

ADMIN_KEY = "admin-key-of-the-bench"
SERVICE_TOKEN = "service-token-of-the-bench"


@dataclass(frozen=True)
class BenchPair:
    """What the measurements talk to; `start_seconds` is from spawn to ready, by service."""

    backend: RunningService
    chat_shell: RunningService
    model_url: str
    backend_url: str
    start_seconds: Mapping[str, float]

    def memory_mb(self) -> dict[str, float]:
        """Return the resident memory of each service in MB (10**6 bytes)."""
        pids = {"backend": self.backend.pid, "chat_shell": self.chat_shell.pid}
        return {name: psutil.Process(pid).memory_info().rss / 1e6 for name, pid in pids.items()}

    def client(self) -> httpx2.Client:
        """Return a client with the admin key."""
        headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
        return httpx2.Client(base_url=self.backend_url, headers=headers, timeout=120)


@contextmanager
def bench_pair(directory: Path, model_arguments: tuple[str, ...], backend: Mapping[str, str]) -> Iterator[BenchPair]:
    """Start fake model, chat_shell and backend; kill them in the end."""
    model_port, grpc_port, http_port, backend_port = (free_port() for _ in range(4))
    model_root = f"http://127.0.0.1:{model_port}"
    backend_url, chat_shell_url = f"http://127.0.0.1:{backend_port}", f"http://127.0.0.1:{http_port}"
    directory.mkdir(parents=True, exist_ok=True)
    model = RunningService(
        "tests.bench.fake_model",
        *("--port", str(model_port), *model_arguments),
        settings={},
        directory=directory,
        ready_url=f"{model_root}/v1/models",
    )
    chat_shell = RunningService(
        "chat_shell",
        settings={
            "CHAT_SHELL_GRPC_PORT": str(grpc_port),
            "CHAT_SHELL_HTTP_PORT": str(http_port),
            "CHAT_SHELL_BACKEND_URL": backend_url,
            "CHAT_SHELL_MODEL": "bench",
            "CHAT_SHELL_MODEL_BASE_URL": f"{model_root}/v1",
            "SERVICE_TOKEN": SERVICE_TOKEN,
        },
        directory=directory,
        ready_url=f"{chat_shell_url}/readyz",
    )
    backend_service = RunningService(
        "backend",
        settings={
            "BACKEND_PORT": str(backend_port),
            "BACKEND_CHAT_SHELL_URL": f"grpc://127.0.0.1:{grpc_port}",
            "BACKEND_ADMIN_KEY": ADMIN_KEY,
            "BACKEND_SECRET": "secret-of-the-bench",
            "SERVICE_TOKEN": SERVICE_TOKEN,
            **backend,
        },
        directory=directory,
        ready_url=f"{backend_url}/readyz",
    )
    started = {}
    running: list[RunningService] = []
    try:
        for name, service in (("model", model), ("chat_shell", chat_shell), ("backend", backend_service)):
            began = time.perf_counter()
            service.start()
            running.append(service)
            service.wait_ready()
            started[name] = time.perf_counter() - began
        yield BenchPair(backend_service, chat_shell, model_root, backend_url, started)
    finally:
        for service in running:
            service.kill()
