"""Search by meaning over 30,000 chunks with vectors of 384 numbers: its speed, what it misses, and what it takes."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from backend.embeddings.domain import TextKind
from backend.embeddings.ports import MeaningPorts
from backend.embeddings.services.question_vectors import NO_MEANING
from backend.foundation.sql.chosen import open_database
from backend.foundation.sql.database import Database
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.search.domain.fusion import FUSION_DEPTH
from backend.search.services.embedding_worker import LEASE, ChangedBases, EmbeddingWorker
from backend.search.services.fused_search import FusedSearch
from backend.search.sql.retrieval import SqlRetrieval
from backend.search.sql.vectors import SqlChunkVectors
from shared.clock import SystemClock
from tests.bench.figures import Figure, percentile
from tests.bench.pair import BenchPair
from tests.bench.searching import WORDS_A_QUERY, Writer, database_url, timed_search
from tests.bench.stores import STORES, Store
from tests.bench.vector_rows import DIMENSION, MODEL, InstantEmbedder, Rows, made_rows, near, number_in
from tests.contract.knowledge_cases import put
from tests.fakes.sql_knowledge import knowledge_store
from tests.servers.counted_embedder import CountedEmbedder
from tests.servers.services import RunningService

CHUNKS = 30_000
CHUNKS_A_DOCUMENT = 500
WORKED_CHUNKS = 2_000
"""So many are embedded by a worker, batch by batch; the others are there sooner."""

WORDS_A_CHUNK = 60
QUERIES = 100
RECALLED = 20
GOAL_MS, GOAL_RECALL, GOAL_MEMORY_MB = 10, 0.97, 20


class _Waiting:
    """The `EmbeddingObserver` that notes when nothing waits any more."""

    def __init__(self) -> None:
        self.is_done = asyncio.Event()

    def note_embedded(self, outcome: str, count: int) -> None:
        del outcome, count

    def note_waiting(self, count: int) -> None:
        if not count:
            self.is_done.set()

    def cannot_store(self, missing: str) -> None:
        raise RuntimeError(missing)


@dataclass(frozen=True)
class Filled:
    """A base whose chunks all have vectors, and what was asked for to measure it."""

    database: Database
    base_id: str
    passages: Rows
    questions: Rows
    queries: Sequence[str]
    vectors: SqlChunkVectors

    @property
    def embedder(self) -> InstantEmbedder:
        return InstantEmbedder(self.passages, self.questions)


def vector_figures(pair: BenchPair, store: Store) -> list[Figure]:
    """Measure in this process, and then the memory of a backend that searches by words, and of one with vectors."""
    with pair.client() as client:
        base_id = client.post("/v1/knowledge_bases", json={"name": "bench"}).json()["id"]
    writer = Writer()
    passages, dice = made_rows(CHUNKS), np.random.default_rng(8)
    questions = near(passages[dice.integers(0, CHUNKS, QUERIES)], 0.8, dice)
    queries = [f"{number} {writer.words(WORDS_A_QUERY)}" for number in range(QUERIES)]
    figures = asyncio.run(_measured(database_url(pair, store), base_id, writer, (passages, questions, queries)))
    return [*figures, _memory(pair, base_id, queries, STORES[store.name])]


async def _measured(url: str, base_id: str, writer: Writer, made: tuple[Rows, Rows, Sequence[str]]) -> list[Figure]:
    database = open_database(url)
    filled = Filled(database, base_id, *made, SqlChunkVectors(database))
    label = f"{CHUNKS:,} chunks, {database.dialect}"
    try:
        seconds = await _fill(filled, writer)
        began = time.perf_counter()
        await filled.vectors.upkeep()
        indexed = time.perf_counter() - began
        searched = await _searches(filled, label)
    finally:
        await database.close()
    return [
        Figure(f"embedding of {WORKED_CHUNKS:,} of {label}, without the embedder's time", 1 / seconds, "chunks/s"),
        Figure(f"making the index of {label}", indexed, "s"),
        *searched,
    ]


async def _fill(filled: Filled, writer: Writer) -> float:
    """Store the chunks and their vectors, some of these as a worker does; return the seconds that took for each."""
    store = knowledge_store(filled.database, SystemClock())
    await _put(store, filled.base_id, writer, range(WORKED_CHUNKS))
    seconds = await _work(filled)
    await _put(store, filled.base_id, writer, range(WORKED_CHUNKS, CHUNKS))
    await filled.vectors.discover(MODEL)
    while texts := (await filled.vectors.take_unembedded(MODEL, CHUNKS_A_DOCUMENT, LEASE)).texts:
        found = await filled.embedder.embed([text.text for text in texts], TextKind.PASSAGE)
        await filled.vectors.put(MODEL, list(zip(texts, found, strict=True)))
    return seconds / WORKED_CHUNKS


async def _put(store: SqlKnowledgeStore, base_id: str, writer: Writer, numbers: range) -> None:
    for first in numbers[::CHUNKS_A_DOCUMENT]:
        texts = [f"{number} {writer.words(WORDS_A_CHUNK)}" for number in range(first, first + CHUNKS_A_DOCUMENT)]
        await put(store, f"{first}.txt", texts, base_id=base_id, document_id=f"doc_{first}", heading_path=())


async def _work(filled: Filled) -> float:
    """Let a worker embed all that waits; return the seconds that it took."""
    waiting, vectors = _Waiting(), filled.vectors
    await vectors.discover(MODEL)
    worker = EmbeddingWorker(vectors, filled.embedder, ChangedBases(), waiting, SystemClock())
    began = time.perf_counter()
    working = asyncio.create_task(worker.step())
    await waiting.is_done.wait()
    seconds = time.perf_counter() - began
    working.cancel()
    await asyncio.wait([working])
    return seconds


async def _searches(filled: Filled, label: str) -> list[Figure]:
    words, vectors = SqlRetrieval(filled.database), filled.vectors
    fused = FusedSearch(words, vectors, MeaningPorts(filled.embedder, filled.embedder, NO_MEANING.reranker))
    ids = [filled.base_id]
    asked = {query: await filled.embedder.vector_of(query) for query in filled.queries}
    first = await _timed(filled.queries[:1], lambda query: vectors.nearest(ids, asked[query], FUSION_DEPTH))
    computed = time.process_time()
    by_meaning = await _timed(filled.queries, lambda query: vectors.nearest(ids, asked[query], FUSION_DEPTH))
    computed = (time.process_time() - computed) * 1000 / len(filled.queries)
    by_words = await _timed(filled.queries, lambda query: words.search(ids, query, FUSION_DEPTH))
    by_both = await _timed(filled.queries, lambda query: fused.search(ids, query, FUSION_DEPTH))
    goal = 1.0 if filled.database.dialect == "sqlite" else GOAL_RECALL
    recall = await _recall(filled, vectors)
    return [
        Figure(f"first search by meaning over {label}", first[0], "ms"),
        Figure(f"search by meaning over {label}, p50", percentile(by_meaning, 0.5), "ms", GOAL_MS),
        Figure(f"search by meaning over {label}, p95", percentile(by_meaning, 0.95), "ms"),
        Figure(f"of that this process computes, {label}, mean", computed, "ms"),
        Figure(f"search by words over {label}, p50", percentile(by_words, 0.5), "ms"),
        Figure(f"search by both over {label}, p50", percentile(by_both, 0.5), "ms"),
        Figure(f"of the nearest {RECALLED} found, {label}", recall, "", goal, at_least=True),
    ]


async def _timed(queries: Sequence[str], search: Callable[[str], Awaitable[object]]) -> list[float]:
    taken: list[float] = []
    for query in queries:
        began = time.perf_counter()
        await search(query)
        taken.append((time.perf_counter() - began) * 1000)
    return taken


async def _recall(filled: Filled, vectors: SqlChunkVectors) -> float:
    """Return which part of the vectors that a comparison of all finds nearest a search finds as well."""
    halves = filled.passages.astype(np.float16).astype(np.float32)
    shares: list[float] = []
    for query in filled.queries:
        question = await filled.embedder.vector_of(query)
        nearest = np.argsort(-(halves @ filled.questions[number_in(query)]))[:RECALLED]
        hits = await vectors.nearest([filled.base_id], question, RECALLED)
        shares.append(len(set(nearest.tolist()) & {number_in(hit.chunk.text) for hit in hits}) / RECALLED)
    return sum(shares) / len(shares)


def _memory(pair: BenchPair, base_id: str, queries: Sequence[str], label: str) -> Figure:
    """Let the backend search by words, then start it with an embedder and search again; return how much it grew."""
    first = _memory_after(pair, base_id, queries)
    embedder = CountedEmbedder(pair.directory / "embedder", dimension=DIMENSION)
    with ExitStack() as running:
        running.callback(embedder.kill)
        embedder.start_and_wait()
        settings = dict(pair.backend.spec.environment) | embedder.settings
        backend = RunningService(
            "backend", settings=settings, directory=pair.directory, ready_url=pair.backend.ready_url
        )
        pair.backend.stop()
        running.callback(backend.kill)
        backend.start()
        backend.wait_ready()
        second = _memory_after(replace(pair, backend=backend), base_id, queries)
    name = f"memory that {CHUNKS:,} vectors take of the backend, {label}"
    return Figure(name, second - first, "MB", GOAL_MEMORY_MB if "PostgreSQL" in label else None)


def _memory_after(pair: BenchPair, base_id: str, queries: Sequence[str]) -> float:
    with pair.client() as client:
        for query in queries:
            timed_search(client, base_id, query)
    return pair.memory_mb()["backend"]
