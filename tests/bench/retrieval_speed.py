"""Speed of search among 30,000 chunks, in one base or thirty: `python -m tests.bench.retrieval_speed`.

The text is made up: words by Zipf's law, some 250 a chunk, so that the frequent ones stand in nearly every chunk
as they do in real text. A query has eight words: three very frequent, three common, two rare.
"""

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import accumulate
from typing import NamedTuple

from backend.foundation.sql.chosen import open_database
from backend.knowledge.domain.knowledge import Chunk, Document, KnowledgeBase
from backend.knowledge.sql.retrieval import SqlRetrieval
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.migrations.migrate import migrate
from tests.fakes.clock import FakeClock
from tests.servers.postgres import PostgresServer

CHUNKS = 30_000
CHUNKS_PER_DOCUMENT = 50
WORDS_PER_CHUNK = (200, 300)
VOCABULARY = [f"w{number}" for number in range(50_000)]
CUMULATED = list(accumulate(1 / (place + 1) for place in range(len(VOCABULARY))))
QUERIES = 60
HITS = 10
T0 = datetime(2026, 11, 22, tzinfo=UTC)


class Speed(NamedTuple):
    """Milliseconds of a search, and chunks a second into the index."""

    place: str
    p50_ms: float
    p95_ms: float
    chunks_per_second: float


def made_up_query(generator: random.Random) -> str:
    """Return eight words, very frequent to rare."""
    picked = [
        generator.sample(VOCABULARY[low:high], n) for low, high, n in ((0, 20, 3), (20, 500, 3), (500, 20_000, 2))
    ]
    return " ".join(word for words in picked for word in words)


def made_up_document(generator: random.Random, base_id: str, number: int) -> tuple[Document, list[Chunk]]:
    """Return a document of fifty chunks."""
    document = Document(
        id=f"doc_{number}",
        knowledge_base_id=base_id,
        name=f"{number}.txt",
        media_type="text/plain",
        sha256="",
        size_bytes=0,
        chunk_count=CHUNKS_PER_DOCUMENT,
        created_at=T0,
    )
    texts = [
        " ".join(generator.choices(VOCABULARY, cum_weights=CUMULATED, k=generator.randint(*WORDS_PER_CHUNK)))
        for _ in range(CHUNKS_PER_DOCUMENT)
    ]
    return document, [
        Chunk(id=f"c{number}-{place}", document_id=document.id, ordinal=place, heading_path=(), text=text, tokens=300)
        for place, text in enumerate(texts)
    ]


@asynccontextmanager
async def knowledge_in(url: str) -> AsyncGenerator[tuple[SqlKnowledgeStore, SqlRetrieval]]:
    """Open an empty database."""
    database = open_database(url)
    try:
        await migrate(database)
        yield SqlKnowledgeStore(database, FakeClock()), SqlRetrieval(database)
    finally:
        await database.close()


async def measure(database: str, url: str, bases: int, searched: Sequence[int]) -> list[Speed]:
    """Fill as many bases with 30,000 chunks in all; search as many of them at once as `searched` says."""
    generator = random.Random(bases)
    async with knowledge_in(url) as (store, retrieval):
        base_ids = [f"kb_{number:032x}" for number in range(bases)]
        for base_id in base_ids:
            await store.create_base(_base(base_id), "bench")
        seconds = await _fill(store, base_ids, generator)
        return [
            _speed(f"{database}, {n} of {bases}", await _search(retrieval, base_ids[:n], generator), seconds)
            for n in searched
        ]


def _speed(place: str, times_ms: Sequence[float], fill_seconds: float) -> Speed:
    p95 = statistics.quantiles(times_ms, n=20)[-1]
    return Speed(place, statistics.median(times_ms), p95, CHUNKS / fill_seconds)


async def _fill(store: SqlKnowledgeStore, base_ids: Sequence[str], generator: random.Random) -> float:
    seconds = 0.0
    for number in range(CHUNKS // CHUNKS_PER_DOCUMENT):
        document, chunks = made_up_document(generator, base_ids[number % len(base_ids)], number)
        started = time.perf_counter()
        await store.put_document(document, b"", chunks)
        seconds += time.perf_counter() - started
    return seconds


async def _search(retrieval: SqlRetrieval, base_ids: Sequence[str], generator: random.Random) -> list[float]:
    times_ms: list[float] = []
    for _ in range(QUERIES):
        query = made_up_query(generator)
        started = time.perf_counter()
        await retrieval.search(base_ids, query, HITS)
        times_ms.append((time.perf_counter() - started) * 1000)
    return times_ms


def _base(base_id: str) -> KnowledgeBase:
    return KnowledgeBase(
        id=base_id,
        tenant="bench",
        name=base_id,
        summary="",
        topics=(),
        routing_hint="",
        routing_keywords=(),
        version=0,
        created_at=T0,
    )


async def measure_all() -> list[Speed]:
    """Measure both databases, with one base and with thirty."""
    server = PostgresServer()
    server.start()
    try:
        with tempfile.TemporaryDirectory() as directory:
            return [
                speed
                for bases, searched in ((1, (1,)), (30, (2, 30)))
                for database, url in (
                    ("SQLite", f"sqlite+aiosqlite:///{directory}/{bases}.db"),
                    ("PostgreSQL", server.url(server.new_database())),
                )
                for speed in await measure(database, url, bases, searched)
            ]
    finally:
        server.close()


def main() -> None:
    """Measure and print."""
    sys.stdout.write(f"{'bases searched':<28}{'p50 ms':>8}{'p95 ms':>8}{'chunks/s in':>13}\n")
    for speed in asyncio.run(measure_all()):
        sys.stdout.write(f"{speed.place:<28}{speed.p50_ms:>8.1f}{speed.p95_ms:>8.1f}{speed.chunks_per_second:>13.0f}\n")


if __name__ == "__main__":
    main()
