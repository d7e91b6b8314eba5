"""Milvus Lite, in an environment of its own that `make test-milvus` makes."""

import asyncio
import sys
from pathlib import Path

from backend.search.milvus.chosen import load_milvus
from backend.search.milvus.engine import MilvusEngine
from shared.errors import Unavailable
from tests.house.sources import ROOT
from tests.servers.ports import free_port

PROGRAM = ROOT / "var" / "milvus-lite-environment" / "bin" / "milvus-lite"


class MilvusServer:
    """Milvus Lite in a process of its own, which can be killed and started again over what it has stored."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._running: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"milvus://127.0.0.1:{self.port}"

    async def start(self) -> None:
        arguments = ("server", "--host", "127.0.0.1", "--port", str(self.port), "--data-dir", str(self._folder))
        self._running = await asyncio.create_subprocess_exec(str(PROGRAM), *arguments, stderr=sys.stderr)
        engine = MilvusEngine(self.url, load_milvus())
        while True:
            try:
                await engine.count([])
                break
            except Unavailable:
                assert self._running.returncode is None
        await engine.close()

    async def __aenter__(self) -> "MilvusServer":
        await self.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.kill()

    async def kill(self) -> None:
        if self._running is not None and self._running.returncode is None:
            self._running.kill()
            await self._running.wait()
