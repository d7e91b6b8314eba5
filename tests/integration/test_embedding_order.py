"""What is embedded next: documents and bases take turns."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from backend.embeddings.domain import TextKind, Vector
from backend.foundation.sql.database import Database
from backend.knowledge.domain.knowledge import Binding, MemberRole
from backend.knowledge.services.knowledge_progress import KnowledgeProgress
from backend.knowledge.sql.attachments import SqlAttachmentStore
from backend.search.services.embedding_worker import TEXTS_AT_ONCE, ChangedBases, EmbeddingWorker
from backend.search.sql.vectors import SqlChunkVectors
from tests.contract.knowledge_cases import make_base
from tests.contract.knowledge_cases import put as put_document
from tests.contract.store_cases import database_url, migrated
from tests.contract.vector_cases import LEASE
from tests.examples import first_of
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


class TimedEmbedder(FakeEmbedder):
    """Takes as long as a local model, which reads text by text, longer ones a little slower.

    `look` is asked after a minute.
    """

    def __init__(self, clock: FakeClock, look: Callable[[], Awaitable[int | None]]) -> None:
        super().__init__()
        self.told: int | None = None
        self.told_at = self._began = clock.now()
        self._clock, self._look = clock, look

    async def embed(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        if self.told is None and self._clock.now() - self._began >= timedelta(minutes=1):
            self.told, self.told_at = await self._look(), self._clock.now()
        lengths = [len(text.split()) for text in texts]
        self._clock.advance(sum(0.05 + 0.004 * length * (1 + length / 500) for length in lengths))
        return await super().embed(texts, kind)


class Silent:
    """Is told when nothing waits any more."""

    def __init__(self) -> None:
        self.idle = asyncio.Event()

    def note_embedded(self, outcome: str, count: int) -> None:
        return

    def note_waiting(self, count: int) -> None:
        if not count:
            self.idle.set()

    def cannot_store(self, missing: str) -> None:
        raise AssertionError(missing)


@pytest.mark.parametrize("database", first_of("sqlite", "postgresql"), indirect=True)
@pytest.mark.parametrize("seed", [0, 1])
async def test_after_a_minute_the_time_that_is_told_to_remain_is_nearly_right(database: Database, seed: int) -> None:
    dice, clock = random.Random(seed), FakeClock()
    store, vectors = knowledge_store(database, clock), SqlChunkVectors(database)
    await store.create_base(make_base(), "ann")

    def write(name: str, count: int, longest: int) -> list[str]:
        return [f"{name} {number} " + "word " * dice.randint(10, longest) for number in range(count)]

    await put(store, "large", write("large", 800, 250))
    for number in range(50):
        await put(store, f"small {number}", write(f"small {number}", 1, 80))

    async def look() -> int | None:
        return (await progress.of([Binding(base=make_base(), role=MemberRole.OWNER)]))["kb_a"].seconds_left

    embedder, changed, silent = TimedEmbedder(clock, look), ChangedBases(), Silent()
    worker = EmbeddingWorker(vectors, embedder, changed, silent, clock)
    progress = KnowledgeProgress(vectors, embedder, worker.pace)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.step())
        await silent.idle.wait()
        changed.note("kb_a")
    assert embedder.told is not None
    took = (clock.now() - embedder.told_at).total_seconds()
    assert took > 60
    assert 0.7 * took <= embedder.told <= 1.3 * took
