"""Both services at debug level, in front of models that the caller serves."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

import httpx2

from tests.leaks.databases import Database, PostgresDatabase, SqliteDatabase
from tests.leaks.embedding import EmbedderKind
from tests.servers.forks import ForkServers
from tests.servers.ports import free_port
from tests.servers.services import RunningService

ADMIN_KEY = "admin-key-of-the-leak-test"
SERVICE_TOKEN = "service-token-of-the-leak-test"
SECRET = "secret-of-the-leak-test"
MODEL = "main-model"
NEVER_OVER = 1_000_000
START_SECONDS = 600


@dataclass(frozen=True)
class ModelAddresses:
    """Where the scripted models listen."""

    main: str
    secondary: str


class Way(NamedTuple):
    """How the services of a pair are joined: the protocol to chat_shell, and the backend's database.

    Where an embedder stands behind the backend, every chunk has a vector. With `forks` the services are forked.
    """

    protocol: Literal["grpc", "http"] = "grpc"
    postgres_url: str = ""
    embedder: EmbedderKind = "none"
    forks: ForkServers | None = None
    grade: Literal["open", "strict"] = "open"

    @property
    def database(self) -> str:
        """The database's name."""
        return "postgres" if self.postgres_url else "sqlite"

    def __str__(self) -> str:
        embedder = "" if self.embedder == "none" else f" {self.embedder} embedder"
        return f"{self.protocol} {self.database}{embedder}{'' if self.grade == 'open' else f' {self.grade}'}"


class MoreSettings(NamedTuple):
    """Settings of the services that differ from those of the leak test."""

    backend: Mapping[str, str] = MappingProxyType({})
    chat_shell: Mapping[str, str] = MappingProxyType({})


DEFAULT_WAY = Way()
NO_MORE = MoreSettings()


@dataclass(frozen=True)
class LeakPair:
    """The running pair."""

    backend: RunningService
    chat_shell: RunningService
    backend_url: str
    chat_shell_url: str
    database: Database

    @property
    def logs(self) -> tuple[Path, Path]:
        """The log files of both."""
        return self.backend.spec.log_path, self.chat_shell.spec.log_path

    def client(self, key: str, **headers: str) -> httpx2.AsyncClient:
        """Return a client of the backend, to be used in an `async with`."""
        named = {"Authorization": f"Bearer {key}", **headers}
        # a connection that idled while a batch was scanned may be closed by the time it is used again
        once = httpx2.Limits(max_keepalive_connections=0)
        return httpx2.AsyncClient(
            base_url=self.backend_url, headers=named, timeout=120, trust_env=False, limits=once, verify=False
        )


@asynccontextmanager
async def running_pair(
    directory: Path,
    models: ModelAddresses,
    timeout_seconds: float,
    way: Way,
    *,
    is_gated: bool,
    more: MoreSettings = NO_MORE,
) -> AsyncGenerator[LeakPair]:
    """Start the pair and kill it in the end; budgets and circuit never refuse."""
    backend_port, grpc_port, http_port = (free_port() for _ in range(3))
    backend_url, chat_shell_url = f"http://127.0.0.1:{backend_port}", f"http://127.0.0.1:{http_port}"
    chat_shell = _service(
        ("tests.leaks.loud", "chat_shell") if is_gated else ("tests.leaks.ungated",),
        {**_settings_of_chat_shell((grpc_port, http_port), backend_url, models, timeout_seconds), **more.chat_shell},
        directory / "chat_shell",
        f"{chat_shell_url}/readyz",
        way.forks,
    )
    file = directory / "backend" / "leaks.db"
    database = PostgresDatabase(way.postgres_url) if way.postgres_url else SqliteDatabase(file)
    protocol = f"grpc://127.0.0.1:{grpc_port}" if way.protocol == "grpc" else chat_shell_url
    backend = _service(
        ("tests.leaks.loud", "backend"),
        {
            "BACKEND_PORT": str(backend_port),
            "BACKEND_CHAT_SHELL_URL": protocol,
            "BACKEND_DATABASE_URL": database.url,
            "BACKEND_ADMIN_KEY": ADMIN_KEY,
            "BACKEND_SECRET": SECRET,
            "BACKEND_RESTRICTED_BUDGETS": f"conversation={NEVER_OVER},day={NEVER_OVER},month={NEVER_OVER}",
            "BACKEND_RESTRICTED_GRADE": way.grade,
            "BACKEND_RESTRICTED_STREAM_SECONDS": "0",
            "SERVICE_TOKEN": SERVICE_TOKEN,
            **more.backend,
        },
        directory / "backend",
        f"{backend_url}/readyz",
        way.forks,
    )
    with ExitStack() as running:
        for service in (chat_shell, backend):
            service.start()
            running.callback(service.kill)
        for service in (chat_shell, backend):
            await asyncio.to_thread(service.wait_ready, START_SECONDS)
        yield LeakPair(backend, chat_shell, backend_url, chat_shell_url, database)


def _settings_of_chat_shell(
    ports: tuple[int, int], backend_url: str, models: ModelAddresses, timeout_seconds: float
) -> dict[str, str]:
    grpc_port, http_port = ports
    return {
        "CHAT_SHELL_GRPC_PORT": str(grpc_port),
        "CHAT_SHELL_HTTP_PORT": str(http_port),
        "CHAT_SHELL_BACKEND_URL": backend_url,
        "CHAT_SHELL_MODEL": MODEL,
        "CHAT_SHELL_MODEL_BASE_URL": models.main,
        "CHAT_SHELL_SAFE_SUMMARY_MODEL": "secondary-model",
        "CHAT_SHELL_SAFE_SUMMARY_BASE_URL": models.secondary,
        "CHAT_SHELL_SAFE_SUMMARY_TIMEOUT_SECONDS": str(timeout_seconds),
        "CHAT_SHELL_CANARY_LIMIT": str(NEVER_OVER),
        "CHAT_SHELL_LOG_LLM_REQUESTS": "1",
        "SERVICE_TOKEN": SERVICE_TOKEN,
    }


def _service(
    command: tuple[str, ...], settings: Mapping[str, str], directory: Path, ready_url: str, forks: ForkServers | None
) -> RunningService:
    directory.mkdir(parents=True, exist_ok=True)
    return RunningService(*command, settings=settings, directory=directory, ready_url=ready_url, forks=forks)
