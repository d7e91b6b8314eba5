"""Search by meaning for the leak test: an embedder that the backend asks, and the wait for all vectors."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import httpx2

from deploy.demo.local_embedder import embedder_settings
from tests.fakes.embedding_server import FakeEmbeddingServer
from tests.servers.embedder import LocalEmbedder

EmbedderKind = Literal["none", "fake", "local"]
"""No embedder, one over words that tests predict, or the model of the wheel."""

PAUSE_SECONDS = 0.2
_PATIENT = {"BACKEND_EMBEDDING_QUERY_TIMEOUT_SECONDS": "10"}
"""Every search is to be by meaning, however busy the machine is."""


@asynccontextmanager
async def staged_embedder(kind: EmbedderKind, directory: Path) -> AsyncGenerator[Mapping[str, str]]:
    """Serve an embedder of this kind; give the settings by which a backend asks it."""
    if kind == "none":
        yield {}
    elif kind == "fake":
        async with FakeEmbeddingServer() as server:
            address = {"BACKEND_EMBEDDING_BASE_URL": server.base_url, "BACKEND_EMBEDDING_MODEL": "fake"}
            yield address | _PATIENT
    else:
        local = LocalEmbedder(directory / "embedder")
        local.start()
        try:
            await asyncio.to_thread(local.wait_ready)
            yield {**embedder_settings(local.port), **_PATIENT}
        finally:
            local.kill()


async def all_embedded(owner: httpx2.AsyncClient, base_ids: Iterable[str]) -> None:
    """Return when every chunk of these bases has a vector."""
    for base_id in base_ids:
        while not _is_embedded((await owner.get(f"/v1/knowledge_bases/{base_id}")).json()):  # noqa: ASYNC110 -- it tells nobody
            await asyncio.sleep(PAUSE_SECONDS)


def _is_embedded(base: Mapping[str, object]) -> bool:
    return base["embedded_chunks"] is not None and base["embedded_chunks"] == base["chunks"]
