"""The pair and the fast fake model as processes of the bench."""

import re
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import httpx2
import psutil

from tests.servers.ports import free_port
from tests.servers.services import RunningService

ADMIN_KEY = "admin-key-of-the-bench"
SERVICE_TOKEN = "service-token-of-the-bench"
_SCHEDULED = 2
"""Of the clocks of a process, the one that counts what the scheduler gave it (`clock_getcpuclockid`)."""


@dataclass(frozen=True)
class BenchPair:
    """What the measurements talk to; `start_seconds` is from spawn to ready, by service."""

    backend: RunningService
    chat_shell: RunningService
    model_url: str
    backend_url: str
    start_seconds: Mapping[str, float]
    directory: Path

    def memory_mb(self) -> dict[str, float]:
        """Return the resident memory of each service in MB (10**6 bytes)."""
        return {name: one.memory_info().rss / 1e6 for name, one in self._services().items()}

    def peak_memory_mb(self) -> float:
        """Return the most resident memory that the backend has had so far, in MB."""
        status = Path(f"/proc/{self.backend.pid}/status").read_text(encoding="ascii")
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024 / 1e6

    def cpu_seconds(self) -> dict[str, float]:
        """Return the CPU time that each service has used, with that of the processes that it has started."""
        return {name: cpu_seconds_of(one) for name, one in self._services().items()}

    def client(self) -> httpx2.Client:
        """Return a client with the admin key."""
        headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
        return httpx2.Client(base_url=self.backend_url, headers=headers, timeout=120)

    def _services(self) -> dict[str, psutil.Process]:
        pids = {"backend": self.backend.pid, "chat_shell": self.chat_shell.pid}
        return {name: psutil.Process(pid) for name, pid in pids.items()}


def cpu_seconds_of(one: psutil.Process) -> float:
    """Return the CPU time of a process, of all threads that it has had, and of its children.

    Linux counts it in nanoseconds, as in `schedstat`, and keeps that of ended threads in the clock of their process.
    Elsewhere, and for children that have ended, it is known in hundredths of a second.
    """
    times = one.cpu_times()
    own = time.clock_gettime(~one.pid << 3 | _SCHEDULED) if sys.platform == "linux" else times.user + times.system
    ended = times.children_user + times.children_system
    return own + ended + sum(map(cpu_seconds_of, one.children()))


@contextmanager
def bench_pair(
    directory: Path,
    backend: Mapping[str, str],
    both: Mapping[str, str] = MappingProxyType({}),
    python: str = sys.executable,
) -> Generator[BenchPair]:
    """Start fake model, chat_shell and backend, with settings for the backend and for both; kill them in the end.

    `python` is the interpreter of both services.
    """
    ports = Ports()
    directory.mkdir(parents=True, exist_ok=True)
    services = {
        "model": model_service(directory, ports),
        "chat_shell": chat_shell_service(directory, ports, both, python),
        "backend": backend_service(directory, ports, {**backend, **both}, python),
    }
    started: dict[str, float] = {}
    with ExitStack() as running:
        for name, service in services.items():
            began = time.perf_counter()
            service.start()
            running.callback(service.kill)
            service.wait_ready()
            started[name] = time.perf_counter() - began
        urls = ports.model_root, ports.backend_url
        yield BenchPair(services["backend"], services["chat_shell"], *urls, started, directory)


class Ports:
    """Free ports of one pair and the addresses made of them."""

    def __init__(self) -> None:
        self.model, self.grpc, self.http, self.backend = (free_port() for _ in range(4))
        self.model_root = f"http://127.0.0.1:{self.model}"
        self.backend_url = f"http://127.0.0.1:{self.backend}"
        self.chat_shell_url = f"http://127.0.0.1:{self.http}"


def model_service(directory: Path, ports: Ports) -> RunningService:
    """Describe the fast fake model."""
    return RunningService(
        "tests.bench.fake_model",
        *("--port", str(ports.model)),
        settings={},
        directory=directory,
        ready_url=f"{ports.model_root}/v1/models",
    )


def chat_shell_service(
    directory: Path, ports: Ports, changes: Mapping[str, str], python: str = sys.executable
) -> RunningService:
    """Describe chat_shell with the fake model behind it."""
    settings = {
        "CHAT_SHELL_GRPC_PORT": str(ports.grpc),
        "CHAT_SHELL_HTTP_PORT": str(ports.http),
        "CHAT_SHELL_BACKEND_URL": ports.backend_url,
        "CHAT_SHELL_MODEL": "bench",
        "CHAT_SHELL_MODEL_BASE_URL": f"{ports.model_root}/v1",
        "SERVICE_TOKEN": SERVICE_TOKEN,
        **changes,
    }
    ready_url = f"{ports.chat_shell_url}/readyz"
    return RunningService("chat_shell", settings=settings, directory=directory, ready_url=ready_url, python=python)


def backend_service(
    directory: Path, ports: Ports, changes: Mapping[str, str], python: str = sys.executable
) -> RunningService:
    """Describe the backend in front of it, on gRPC."""
    settings = {
        "BACKEND_PORT": str(ports.backend),
        "BACKEND_CHAT_SHELL_URL": f"grpc://127.0.0.1:{ports.grpc}",
        "BACKEND_ADMIN_KEY": ADMIN_KEY,
        "BACKEND_SECRET": "secret-of-the-bench",
        "SERVICE_TOKEN": SERVICE_TOKEN,
        **changes,
    }
    ready_url = f"{ports.backend_url}/readyz"
    return RunningService("backend", settings=settings, directory=directory, ready_url=ready_url, python=python)
