"""Two backends, each with a chat_shell of its own, over one PostgreSQL and one Valkey; each runs either release."""

import asyncio
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from tests.e2e.pair import ADMIN_KEY, SECRET, SERVICE_TOKEN
from tests.servers.ports import free_port
from tests.servers.services import ROOT, Launch, RunningService

NEW = ROOT
MODEL = "demo-model"
PRE_STOP_SECONDS = 3.0
"""Between the last request that is sent to a process and the signal, as the preStop hook of the manifests waits."""


@dataclass
class Column:
    """A backend and its chat_shell on fixed ports; `in_use` is whether the balancer sends requests here."""

    name: str
    directory: Path
    launch: Launch
    shared_settings: Mapping[str, str]
    model_url: str
    backend_port: int = field(default_factory=free_port)
    grpc_port: int = field(default_factory=free_port)
    http_port: int = field(default_factory=free_port)
    in_use: bool = False
    backend_code: Path = NEW
    backend: RunningService | None = None
    chat_shell: RunningService | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.backend_port}"

    def start_backend(self, code: Path) -> RunningService:
        """Start the backend of a release."""
        settings = {
            "PYTHONPATH": str(code),
            "BACKEND_PORT": str(self.backend_port),
            "BACKEND_CHAT_SHELL_URL": f"grpc://127.0.0.1:{self.grpc_port}",
            "BACKEND_ADMIN_KEY": ADMIN_KEY,
            "BACKEND_SECRET": SECRET,
            "SERVICE_TOKEN": SERVICE_TOKEN,
            **self.shared_settings,
        }
        self.backend_code = code
        self.backend = self._started("backend", settings, f"{self.url}/readyz")
        return self.backend

    def start_chat_shell(self, code: Path) -> RunningService:
        """Start the chat_shell of a release."""
        settings = {
            "PYTHONPATH": str(code),
            "CHAT_SHELL_GRPC_PORT": str(self.grpc_port),
            "CHAT_SHELL_HTTP_PORT": str(self.http_port),
            "CHAT_SHELL_BACKEND_URL": self.url,
            "CHAT_SHELL_MODEL": MODEL,
            "CHAT_SHELL_MODEL_BASE_URL": self.model_url,
            "CHAT_SHELL_MODEL_API_KEY": "credential-of-the-provider",
            "SERVICE_TOKEN": SERVICE_TOKEN,
        }
        self.chat_shell = self._started("chat_shell", settings, f"http://127.0.0.1:{self.http_port}/readyz")
        return self.chat_shell

    async def replace_backend(self, code: Path) -> None:
        """Let the backend finish its turns and end, and start that of another release in its place."""
        await self._ended(self.backend)
        await asyncio.to_thread(self.start_backend(code).wait_ready, 120)
        await self.take_into_use()

    async def replace_chat_shell(self, code: Path) -> None:
        """Let the chat_shell finish its turns and end, and start that of another release in its place."""
        await self._ended(self.chat_shell)
        await asyncio.to_thread(self.start_chat_shell(code).wait_ready, 120)
        await self.take_into_use()

    async def take_into_use(self) -> None:
        """Send requests here from now on.

        A backend has several chat_shells where it is deployed; with its only one away, its channel tries again after a
        pause that grows, and turns that come earlier fail. So one must have succeeded before.
        """
        headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
        async with httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=60, trust_env=False) as client:
            status = 0
            while status != 200:
                status = (await client.post("/v1/responses", json={"input": "Ready?", "store": False})).status_code
        self.in_use = True

    async def _ended(self, service: RunningService | None) -> None:
        """Ask for the end while turns still run here, but no further ones are sent."""
        self.in_use = False
        assert service is not None
        # A request that was sent just before must arrive before the end is asked for, as behind a preStop hook.
        await asyncio.sleep(PRE_STOP_SECONDS)
        service.send(signal.SIGTERM)
        assert await asyncio.to_thread(service.wait_or_kill, 120) == 0, service.log()

    def _started(self, module: str, settings: Mapping[str, str], ready_url: str) -> RunningService:
        directory = self.directory / self.name
        directory.mkdir(parents=True, exist_ok=True)
        return self.launch(module, settings=settings, directory=directory, ready_url=ready_url)
