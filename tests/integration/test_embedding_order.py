"""What is embedded next: documents and bases take turns."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from backend.embeddings.domain import TextKind
from backend.foundation.sql.database import Database
from backend.knowledge.sql.attachments import SqlAttachmentStore
from backend.search.services.embedding_worker import TEXTS_AT_ONCE
from backend.search.sql.vectors import SqlChunkVectors
from tests.contract.knowledge_cases import make_base
from tests.contract.knowledge_cases import put as put_document
from tests.contract.store_cases import database_url, migrated
from tests.contract.vector_cases import LEASE
from tests.fakes.clock import FakeClock
from tests.fakes.meaning import FakeEmbedder
from tests.fakes.sql_knowledge import knowledge_store

AT_ONCE = 8
put = partial(put_document, heading_path=())


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    async with migrated(database_url(request.param, request, tmp_path)) as opened:
        yield opened


async def embedded_next(vectors: SqlChunkVectors, at_once: int = AT_ONCE) -> list[str]:
    """Embed a batch; return its texts."""
    embedder = FakeEmbedder()
    model = await embedder.model()
    assert await vectors.find_missing() is None
    await vectors.discover(model)
    texts = (await vectors.take_unembedded(model, at_once, LEASE)).texts
    made = await embedder.embed([each.text for each in texts], TextKind.PASSAGE)
    await vectors.put(model, list(zip(texts, made, strict=True)))
    return [each.text for each in texts]


async def test_a_small_document_waits_for_no_large_one_nor_that_for_all_small_ones(database: Database) -> None:
    store, vectors = (
        knowledge_store(database, FakeClock()),
        SqlChunkVectors(database),
    )
    await store.create_base(make_base(), "ann")
    await put(store, "large", [f"large {number}" for number in range(100)])
    assert await embedded_next(vectors) == [f"large {number}" for number in range(AT_ONCE)]
    await put(store, "small", ["small 0", "small 1"])
    batch = await embedded_next(vectors)
    assert {"small 0", "small 1"} < set(batch)
    assert len(batch) == AT_ONCE
    for number in range(20):
        await put(store, f"tiny {number}", [f"tiny {number}"])
    batch = await embedded_next(vectors)
    assert 0 < sum(text.startswith("large") for text in batch) < sum(text.startswith("tiny") for text in batch)


async def test_fifty_small_documents_are_embedded_within_a_tenth_of_the_work_beside_a_large_one(
    database: Database,
) -> None:
    store, vectors = knowledge_store(database, FakeClock()), SqlChunkVectors(database)
    await store.create_base(make_base(), "ann")
    await put(store, "large", [f"large {number}" for number in range(800)])
    for number in range(50):
        await put(store, f"small {number}", [f"small {number}"])
    embedded: list[str] = []
    while sum(text.startswith("small") for text in embedded) < 50:
        batch = await embedded_next(vectors, TEXTS_AT_ONCE)
        assert any(text.startswith("large") for text in batch)
        embedded += batch
    assert len(embedded) <= 850 / 10


async def test_bases_take_turns_and_the_one_searched_last_has_every_second(database: Database) -> None:
    store, vectors = (
        knowledge_store(database, FakeClock()),
        SqlChunkVectors(database),
    )
    for base_id in ("kb_a", "kb_b", "kb_c"):
        await store.create_base(make_base(base_id), "ann")
        await put(store, "a", [f"{base_id} {number}" for number in range(100)], base_id=base_id)
    turns = [(await embedded_next(vectors))[0][:4] for _ in range(3)]
    assert turns == ["kb_a", "kb_b", "kb_c"]
    await SqlAttachmentStore(database, FakeClock()).note_active(["kb_b"])
    turns = [(await embedded_next(vectors))[0][:4] for _ in range(6)]
    assert turns == ["kb_b", "kb_a", "kb_b", "kb_b", "kb_b", "kb_c"]
