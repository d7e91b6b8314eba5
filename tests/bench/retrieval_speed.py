"""Speed and size of the index at 100,000 chunks, on both databases: `python -m tests.bench.retrieval_speed`.

The text is made up: words by Zipf's law, some 250 a chunk, so that the frequent ones stand in nearly every chunk
as they do in real text. A query has eight words: three very frequent, three common, two rare; a long one has 500 drawn
like the text's own. Files are cut as they are through HTTP, in a child process, while the upkeep of the index runs.
With `BALLAST_CORPORA` the size is measured on real text too, English and Chinese.
"""

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, text

from backend.extraction.formats.reader import LibraryDocumentReader
from backend.foundation.sql.chosen import open_database
from backend.foundation.sql.database import Database
from backend.identity.domain import Caller, KeyRole
from backend.knowledge.domain.knowledge import KnowledgeBase
from backend.knowledge.services.knowledge_documents import IngestDocument, NewDocument
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.migrations.migrate import migrate
from backend.search.sql.retrieval import SqlRetrieval
from tests.bench.eval_sets import HANDBOOK, PASSAGES, read_corpora
from tests.fakes.clock import FakeClock
from tests.fakes.sql_knowledge import knowledge_store
from tests.servers.postgres import PostgresServer

CHUNKS = 100_000
CHUNKS_PER_DOCUMENT = 500
WORDS_PER_CHUNK = (200, 300)
VOCABULARY = [f"w{number}" for number in range(50_000)]
CUMULATED = list(accumulate(1 / (place + 1) for place in range(len(VOCABULARY))))
QUERIES = 60
LONG_QUERY_WORDS = 500
HITS = 10
CALLER = Caller(user_id="bench", tenant="bench", role=KeyRole.USER)
T0 = datetime(2026, 11, 22, tzinfo=UTC)

_TEXT_BYTES = "SELECT SUM(LENGTH(CAST(text AS BLOB))) FROM chunk"
_TEXT_BYTES_POSTGRES = "SELECT SUM(octet_length(text)) FROM chunk"
_INDEX_BYTES = "SELECT SUM(pgsize) FROM dbstat WHERE name LIKE '%index_segment%' OR name LIKE '%index_page%'"
_INDEX_BYTES_POSTGRES = (
    "SELECT pg_total_relation_size('index_page') + pg_total_relation_size('index_segment')"
    " + pg_total_relation_size('index_gone')"
)


class Figures(NamedTuple):
    """What one database does with one corpus."""

    place: str
    chunks: int
    chunks_per_second: float
    index_per_text: float
    search_ms: float
    long_search_ms: float
    memory_mb: float


def made_up_query(generator: random.Random) -> str:
    """Return eight words, very frequent to rare."""
    picked = [
        generator.sample(VOCABULARY[low:high], n) for low, high, n in ((0, 20, 3), (20, 500, 3), (500, 20_000, 2))
    ]
    return " ".join(word for words in picked for word in words)


def long_query(generator: random.Random) -> str:
    """Return words as they stand in the text."""
    return " ".join(generator.choices(VOCABULARY, cum_weights=CUMULATED, k=LONG_QUERY_WORDS))


def made_up_documents(generator: random.Random) -> Iterator[bytes]:
    """Yield documents whose paragraphs are about a chunk each."""
    for _ in range(CHUNKS // CHUNKS_PER_DOCUMENT):
        yield "\n\n".join(
            " ".join(generator.choices(VOCABULARY, cum_weights=CUMULATED, k=generator.randint(*WORDS_PER_CHUNK))) + "."
            for _ in range(CHUNKS_PER_DOCUMENT)
        ).encode()


@asynccontextmanager
async def knowledge_in(url: str) -> AsyncGenerator[tuple[Database, SqlKnowledgeStore, IngestDocument]]:
    """Open an empty database with a base in it; its index is kept in order meanwhile."""
    database, reader = open_database(url), LibraryDocumentReader()
    try:
        await migrate(database)
        store = knowledge_store(database, FakeClock())
        await store.create_base(_base("kb_bench"), CALLER.user_id)
        tidying = asyncio.create_task(store.maintenance.run(is_only_replica=True))
        yield database, store, IngestDocument(store, reader, FakeClock())
        tidying.cancel()
    finally:
        await reader.close()
        await database.close()


async def measure(place: str, url: str, bodies: Iterable[bytes]) -> Figures:
    """Put documents, then search among their chunks."""
    generator = random.Random(1)
    chunks, seconds = 0, 0.0
    async with knowledge_in(url) as (database, store, ingest):
        for number, body in enumerate(bodies):
            started = time.perf_counter()
            document, _ = await ingest.put(CALLER, "kb_bench", NewDocument(f"{number}.txt", "text/plain", body))
            seconds += time.perf_counter() - started
            chunks += document.chunk_count
        await store.maintenance.index.tidy()
        retrieval = SqlRetrieval(database)
        searches = [await _timed(retrieval, made_up_query(generator)) for _ in range(QUERIES)]
        long_searches = [await _timed(retrieval, long_query(generator)) for _ in range(QUERIES // 4)]
        size = await database.read(index_per_text)
    return Figures(
        place,
        chunks,
        chunks / seconds,
        size,
        statistics.median(searches),
        statistics.median(long_searches),
        memory_mb(),
    )


async def _timed(retrieval: SqlRetrieval, query: str) -> float:
    started = time.perf_counter()
    await retrieval.search(["kb_bench"], query, HITS)
    return (time.perf_counter() - started) * 1000


def index_per_text(connection: Connection) -> float:
    """Return the bytes of the index for each byte of the chunks' text."""
    is_sqlite = connection.dialect.name == "sqlite"
    index, said = (_INDEX_BYTES, _TEXT_BYTES) if is_sqlite else (_INDEX_BYTES_POSTGRES, _TEXT_BYTES_POSTGRES)
    return float(connection.execute(text(index)).scalar_one()) / float(connection.execute(text(said)).scalar_one())


def memory_mb() -> float:
    """Return what this process holds in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1024**2


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


def corpora() -> dict[str, Iterable[bytes]]:
    """Return the texts to measure, by name; real ones where they are there."""
    found: dict[str, Iterable[bytes]] = {"made up": made_up_documents(random.Random(0))}
    if PASSAGES.exists() and HANDBOOK.exists():
        documents, _ = read_corpora()
        for name, kind in (("Chinese", "text/plain"), ("English", "text/markdown")):
            found[name] = _joined(iter([bytes(one.body) for one in documents if one.content_type == kind]))
    return found


def _joined(bodies: Iterator[bytes]) -> Iterator[bytes]:
    while some := list(islice(bodies, 50)):
        yield b"\n\n".join(some)


async def measure_all() -> list[Figures]:
    """Measure both databases."""
    server = PostgresServer()
    server.start()
    try:
        with tempfile.TemporaryDirectory() as directory:
            return [
                await measure(f"{database}, {name}", url, bodies)
                for database in ("SQLite", "PostgreSQL")
                for name, bodies in corpora().items()
                for url in (
                    f"sqlite+aiosqlite:///{directory}/{name}.db"
                    if database == "SQLite"
                    else server.url(server.new_database()),
                )
            ]
    finally:
        server.close()


def main() -> None:
    """Measure and print."""
    heads = ("chunks", "chunks/s in", "index/text", "search ms", "500 words ms", "memory MB")
    sys.stdout.write(f"{'':<24}" + "".join(head.rjust(14) for head in heads) + "\n")
    for one in asyncio.run(measure_all()):
        sys.stdout.write(
            f"{one.place:<24}{one.chunks:>14}{one.chunks_per_second:>14.0f}{one.index_per_text:>14.2f}"
            f"{one.search_ms:>14.1f}{one.long_search_ms:>14.1f}{one.memory_mb:>14.0f}\n"
        )


if __name__ == "__main__":
    main()
