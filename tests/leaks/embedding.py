"""Search by meaning for the leak test: an embedder that the backend asks, and vectors of all that is stored."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta

from backend.foundation.sql.chosen import open_database
from backend.knowledge.sql.vectors import SqlChunkVectors
from backend.meaning.domain import ConfiguredEmbedder, EmbeddingModel, TextKind
from backend.meaning.services.centred_embedder import CentredEmbedder
from backend.meaning.services.reference_texts import REFERENCE_DIGEST
from tests.fakes.embedding_server import FakeEmbeddingServer
from tests.fakes.meaning import FAKE_DIMENSION

MODEL = "embedder-of-the-leak-test"
LEASE = timedelta(minutes=1)
TEXTS_AT_ONCE = 64
PAUSE_SECONDS = 0.05


def embedding_settings(server: FakeEmbeddingServer) -> Mapping[str, str]:
    """Return the settings by which a backend asks this embedder, however busy the machine is."""
    return {
        "BACKEND_EMBEDDING_BASE_URL": server.base_url,
        "BACKEND_EMBEDDING_MODEL": MODEL,
        "BACKEND_EMBEDDING_QUERY_TIMEOUT_SECONDS": "10",
    }


async def embed_all(url: str, server: FakeEmbeddingServer) -> None:
    """Return when every chunk of a database has a vector, beside whoever else embeds them."""
    name = f"{ConfiguredEmbedder(model=MODEL).stored_name}~{REFERENCE_DIGEST}"
    model, embedder = EmbeddingModel(name=name, dimension=FAKE_DIMENSION), CentredEmbedder(server.embedder)
    database = open_database(url)
    try:
        vectors = SqlChunkVectors(database)
        await vectors.discover(model)
        while await vectors.waiting(model):
            texts = (await vectors.take_unembedded(model, TEXTS_AT_ONCE, LEASE)).texts
            made = await embedder.embed([text.text for text in texts], TextKind.PASSAGE)
            await vectors.put(model, list(zip(texts, made, strict=True)))
            await asyncio.sleep(0 if texts else PAUSE_SECONDS)
    finally:
        await database.close()
