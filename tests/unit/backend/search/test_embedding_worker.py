"""The worker that gives chunks their vectors, over fakes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from backend.embeddings.domain import EmbeddingModel, TextKind, Vector
from backend.knowledge.domain.knowledge import Binding, MemberRole
from backend.knowledge.services.knowledge_progress import KnowledgeProgress
from backend.search.ports.vectors import EmbeddingProgress, TextWithoutVector
from backend.search.services.embedding_worker import TEXTS_AT_ONCE, ChangedBases, EmbeddingWorker
from shared.errors import ModelRequestRejected, Unavailable
from tests.contract.knowledge_cases import make_base, put
from tests.fakes.chunk_vectors import FakeChunkVectors
from tests.fakes.clock import FakeClock
from tests.fakes.meaning import FakeEmbedder
from tests.fakes.store_knowledge import FakeKnowledge


@dataclass
class Told:
    counts: dict[str, int] = field(default_factory=dict[str, int])
    last_waiting: int = -1
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def note_embedded(self, outcome: str, count: int) -> None:
        self.counts[outcome] = self.counts.get(outcome, 0) + count

    def note_waiting(self, count: int) -> None:
        self.last_waiting = count
        if not count:
            self.idle.set()

    def cannot_store(self, missing: str) -> None:
        raise AssertionError(missing)


class House:
    """A worker over fakes; `settle` lets it work until it waits."""

    def __init__(self, embedder: FakeEmbedder | None = None, clock: FakeClock | None = None) -> None:
        self.knowledge = FakeKnowledge()
        self.vectors = FakeChunkVectors(self.knowledge, FakeClock())
        self.embedder = embedder or FakeEmbedder()
        self.told, self.changed = Told(), ChangedBases()
        self.worker = EmbeddingWorker(self.vectors, self.embedder, self.changed, self.told, clock or FakeClock())

    async def fill(self, *texts: str) -> None:
        if self.knowledge.base("kb_a") is None:
            await self.knowledge.create_base(make_base(), "ann")
        await put(self.knowledge, "a", texts, heading_path=())

    async def settle(self) -> None:
        """Run a step until it waits, and end the waiting."""
        self.told.idle.clear()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.worker.step())
            await self.told.idle.wait()
            self.changed.note("kb_a")

    async def progress(self) -> EmbeddingProgress:
        return (await self.vectors.progress(["kb_a"], await self.embedder.model()))["kb_a"]


async def test_all_that_waits_is_embedded_in_batches() -> None:
    house = House()
    await house.fill(*(f"text {number}" for number in range(TEXTS_AT_ONCE + 5)))
    await house.settle()
    assert [len(texts) for texts, _ in house.embedder.calls] == [TEXTS_AT_ONCE, 5]
    assert {kind for _, kind in house.embedder.calls} == {TextKind.PASSAGE}
    assert await house.progress() == EmbeddingProgress(TEXTS_AT_ONCE + 5, TEXTS_AT_ONCE + 5)
    assert (house.told.counts, house.told.last_waiting) == ({"embedded": TEXTS_AT_ONCE + 5}, 0)


class SlowEmbedder(FakeEmbedder):
    """Takes two seconds for each word."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock

    async def embed(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        self._clock.advance(2 * sum(len(text.split()) for text in texts))
        return await super().embed(texts, kind)


async def test_the_pace_of_the_last_batches_and_the_length_of_chunks_tell_how_long_the_rest_takes() -> None:
    clock = FakeClock()
    house = House(SlowEmbedder(clock), clock)
    progress = KnowledgeProgress(house.vectors, house.embedder, house.worker.pace)
    owner = Binding(base=make_base(), role=MemberRole.OWNER)
    await house.fill("one", "two", "three")
    assert (await progress.of([owner]))["kb_a"] == EmbeddingProgress(0, 3, 3, 3, seconds_left=None)
    await house.settle()
    assert (await progress.of([owner]))["kb_a"] == EmbeddingProgress(3, 3, seconds_left=0)
    await put(house.knowledge, "b", [f"text {number} of some words" for number in range(100)], heading_path=())
    told = (await progress.of([owner]))["kb_a"].seconds_left
    began = clock.now()
    await house.settle()
    took = (clock.now() - began).total_seconds()
    assert took == 1000
    assert told is not None
    assert 0.7 * took <= told <= 1.3 * took


class AwayOnce(FakeEmbedder):
    """Is away at its first call."""

    async def embed(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        if not self.calls:
            self.calls.append((tuple(texts), kind))
            raise Unavailable("The embedder is away.")
        return await super().embed(texts, kind)


async def test_an_embedder_that_is_away_loses_nothing() -> None:
    house = House(AwayOnce())
    await house.fill("one", "two")
    with pytest.raises(Unavailable):
        await house.worker.step()
    await house.settle()
    assert await house.progress() == EmbeddingProgress(2, 2)
    assert house.told.counts == {"failed": 2, "embedded": 2}


class AwayDatabase(FakeChunkVectors):
    """Is away for so many calls that come after texts have been made."""

    outages = 2

    async def put(self, model: EmbeddingModel, vectors: Sequence[tuple[TextWithoutVector, Vector]]) -> int:
        if self.outages:
            self.outages -= 1
            raise Unavailable("The database is away.")
        return await super().put(model, vectors)


async def test_what_is_made_while_the_database_is_away_is_stored_later_and_not_made_again() -> None:
    house = House()
    house.vectors = AwayDatabase(house.knowledge, FakeClock())
    house.worker = EmbeddingWorker(house.vectors, house.embedder, house.changed, house.told, FakeClock())
    await house.fill("one", "two")
    for _ in range(AwayDatabase.outages):
        with pytest.raises(Unavailable):
            await house.worker.step()
    await house.settle()
    assert await house.progress() == EmbeddingProgress(2, 2)
    assert house.embedder.texts == ["one", "two"]


async def test_vectors_of_deleted_chunks_go_while_the_embedder_is_away() -> None:
    house = House()
    await house.fill("one", "two")
    await house.settle()
    house.embedder.failure = Unavailable("The embedder is away.")
    await house.knowledge.delete_document("kb_a", "a")
    with pytest.raises(Unavailable):
        await house.worker.step()
    assert await house.vectors.sweep(None) == 0, "they are gone"


async def test_a_refused_text_holds_up_no_other() -> None:
    house = House(FakeEmbedder(refused=["bad"]))
    await house.fill("one", "bad", "two")
    await house.settle()
    assert await house.progress() == EmbeddingProgress(2, 3)
    calls = len(house.embedder.calls)
    await house.settle()
    assert len(house.embedder.calls) == calls
    assert house.told.counts == {"embedded": 2, "refused": 1}


class RefusingAll(FakeEmbedder):
    async def embed(self, texts: Sequence[str], kind: TextKind) -> tuple[Vector, ...]:
        raise ModelRequestRejected("the embedder rejected the request (status 401)")


async def test_an_embedder_that_refuses_everything_is_one_that_is_away() -> None:
    house = House(RefusingAll())  # a wrong key, or a model that does not exist
    await house.fill("one", "two")
    with pytest.raises(Unavailable):
        await house.worker.step()
    assert await house.vectors.count_waiting(await house.embedder.model()) == 2


async def test_a_change_wakes_the_worker() -> None:
    house = House()
    await house.fill("one")
    async with asyncio.TaskGroup() as group:
        group.create_task(house.worker.step())
        await house.told.idle.wait()
        await house.fill("two")
        house.changed.note("kb_a")
    await house.settle()
    assert house.embedder.texts == ["one", "two"]
