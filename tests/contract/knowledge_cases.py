"""Values and stores for the contracts of knowledge."""

import random
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

from backend.foundation.sql.chosen import open_database
from backend.knowledge.domain.knowledge import Document, KnowledgeBase
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.migrations.migrate import migrate
from backend.search.domain.chunks import CHUNKS_AT_ONCE, Chunk
from backend.search.ports.index import Retrieval
from backend.search.sql.retrieval import SqlRetrieval
from shared.models.values import Place
from tests.fakes.clock import FakeClock
from tests.fakes.sql_knowledge import knowledge_store
from tests.fakes.store_knowledge import FakeKnowledge

WORDS = [f"w{number}" for number in range(2_200)]
T0 = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)


class Knowledge(NamedTuple):
    store: KnowledgeStore
    retrieval: Retrieval


@asynccontextmanager
async def sql_knowledge(url: str) -> AsyncGenerator[Knowledge]:
    database = open_database(url)
    try:
        await migrate(database)
        yield Knowledge(knowledge_store(database, FakeClock()), SqlRetrieval(database))
    finally:
        await database.close()


def fake_knowledge() -> Knowledge:
    fake = FakeKnowledge()
    return Knowledge(fake, fake)


HEADINGS = ("Guide", "河")


def make_base(base_id: str = "kb_a", *, tenant: str = "acme", **changes: Any) -> KnowledgeBase:
    base = KnowledgeBase(
        id=base_id,
        tenant=tenant,
        name=f"Base {base_id}",
        summary="What we know",
        topics=("rivers", "河流"),
        routing_hint="Ask about rivers",
        routing_keywords=("river",),
        version=0,
        created_at=T0,
    )
    return base.model_copy(update=changes)


def make_document(
    name: str,
    texts: Sequence[str],
    *,
    base_id: str = "kb_a",
    document_id: str = "",
    heading_path: tuple[str, ...] = HEADINGS,
) -> tuple[Document, bytes, list[Chunk]]:
    body = "\n\n".join(texts).encode()
    document = Document(
        id=document_id or f"doc_{base_id}_{name}",
        knowledge_base_id=base_id,
        name=name,
        media_type="text/plain",
        sha256="0" * 64,
        size_bytes=len(body),
        chunk_count=len(texts),
        created_at=T0,
        notes=("Page 3 has no text.",),
    )
    chunks = [
        Chunk(
            id=f"chunk_{document.id}_{ordinal}",
            document_id=document.id,
            ordinal=ordinal,
            heading_path=heading_path,
            text=text,
            tokens=10,
            place=Place(page=ordinal + 1),
        )
        for ordinal, text in enumerate(texts)
    ]
    return document, body, chunks


async def put(
    store: KnowledgeStore,
    name: str,
    texts: Sequence[str],
    *,
    base_id: str = "kb_a",
    document_id: str = "",
    heading_path: tuple[str, ...] = HEADINGS,
) -> Document:
    document, body, chunks = make_document(
        name, texts, base_id=base_id, document_id=document_id, heading_path=heading_path
    )
    stored, _ = await store.put_document(document, body, indexed(chunks))
    return stored


async def indexed(chunks: Sequence[Chunk]) -> AsyncIterator[Sequence[Chunk]]:
    """Give chunks as a document reader does."""
    for start in range(0, len(chunks), CHUNKS_AT_ONCE):
        yield chunks[start : start + CHUNKS_AT_ONCE]


def made_up(seed: int, chunk_count: int = 60) -> list[str]:
    """Return texts of forty words each, frequent ones and rare ones."""
    generator = random.Random(seed)
    texts = [" ".join(generator.choices(WORDS, k=40)) for _ in range(chunk_count)]
    return [*texts, "lonely" if seed % 2 else "rare"]
