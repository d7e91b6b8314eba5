"""CPU of a search over a large base of documents of real size: `python -m tests.bench.large_base`.

The documents are paragraphs of the corpora (`BALLAST_CORPORA`), put together anew: two thirds English, 5 to 200 kB.
The base is made once, in var/bench/large.db, and serves later runs and the code of other work trees:

    python -m tests.bench.large_base [--database FILE] [--chunks 235000]
    cd another/tree && PYTHONPATH=. python this/tree/tests/bench/large_base.py --database this/tree/var/bench/large.db

CPU is that of the process that searches, in all its threads: what other programs do meanwhile counts little.
"""

import argparse
import asyncio
import gzip
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
from sqlalchemy import text

from backend.extraction.formats.reader import LibraryDocumentReader
from backend.foundation.sql.chosen import open_database
from backend.foundation.sql.database import Database
from backend.identity.domain import Caller, KeyRole
from backend.knowledge.services.ingest_document import IngestDocument, NewDocument
from backend.migrations.migrate import migrate
from backend.search.sql.retrieval import SqlRetrieval
from tests.contract.knowledge_cases import make_base
from tests.fakes.clock import FakeClock
from tests.fakes.sql_knowledge import knowledge_store

ROOT = Path(__file__).parents[2]
CORPORA = Path(os.environ.get("BALLAST_CORPORA") or ROOT.parent / "shared" / "corpora")
LARGE = ROOT / "var" / "bench" / "large.db"
CHUNKS = 235_000
WORDS = (1, 5, 20)
QUERIES = 40
HITS = 10
BASE = "kb_large"
CALLER = Caller(user_id="bench", tenant="bench", role=KeyRole.USER)


def paragraphs() -> tuple[Sequence[str], Sequence[str]]:
    """Return the English and the Chinese paragraphs of the corpora."""
    english = [
        part
        for name in ("handbook-en", "benign-en")
        for row in _lines(name)
        for part in row["text"].split("\n\n")
        if part.strip()
    ]
    return english, [row["context"] for row in _lines("cmrc-zh")]


def documents(dice: random.Random) -> Iterator[bytes]:
    """Yield documents without end: most of some tens of kilobytes."""
    english, chinese = paragraphs()
    while True:
        source = english if dice.random() < 2 / 3 else chinese
        size, parts = min(max(dice.lognormvariate(10.5, 0.8), 5_000), 200_000), list[str]()
        while size > 0:
            parts.append(dice.choice(source))
            size -= len(parts[-1].encode())
        yield "\n\n".join(parts).encode()


def queries(dice: random.Random, words: int) -> Iterator[str]:
    """Yield questions without end, whose words stand beside each other in a paragraph."""
    english, chinese = paragraphs()
    while True:
        source, is_english = (english, True) if dice.random() < 2 / 3 else (chinese, False)
        paragraph = dice.choice(source)
        said = paragraph.split() if is_english else [paragraph[at : at + 2] for at in range(0, len(paragraph), 2)]
        if len(said) >= words:
            begin = dice.randrange(len(said) - words + 1)
            yield (" " if is_english else "").join(said[begin : begin + words])


async def fill(database: Database, chunks: int) -> None:
    """Put documents until the base has so many chunks."""
    dice, reader = random.Random(0), LibraryDocumentReader()
    store = knowledge_store(database, FakeClock())
    await store.create_base(make_base(BASE, tenant=CALLER.tenant), CALLER.user_id)
    ingest = IngestDocument(store, reader, FakeClock())
    put = 0
    for number, body in enumerate(documents(dice)):
        put += (await ingest.put(CALLER, BASE, NewDocument(f"{number}.md", "text/markdown", body)))[0].chunk_count
        if put >= chunks:
            break
        if number % 100 == 0:
            sys.stderr.write(f"{put} chunks of {chunks}\n")
    await store.maintenance.index.tidy()
    await reader.close()


async def cpu_ms(database: Database, words: int) -> list[float]:
    """Return the milliseconds of CPU of each search."""
    retrieval, asked = SqlRetrieval(database), queries(random.Random(1), words)
    await retrieval.search([BASE], next(asked), HITS)
    times: list[float] = []
    for _ in range(QUERIES):
        query, started = next(asked), time.process_time()
        await retrieval.search([BASE], query, HITS)
        times.append((time.process_time() - started) * 1000)
    return times


async def measure(path: Path, chunks: int) -> None:
    """Make the base if it is not there, and search."""
    is_there = path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    database = open_database(f"sqlite+aiosqlite:///{path}")
    try:
        if not is_there:
            await migrate(database)
            await fill(database, chunks)
        size = text("SELECT COUNT(*), SUM(size_bytes), SUM(chunk_count) FROM document")
        count, size_bytes, chunk_count = await database.read(lambda connection: connection.execute(size).one())
        print(f"{count} documents, {size_bytes / 1e6:.0f} MB, {chunk_count} chunks")
        for words in WORDS:
            times = await cpu_ms(database, words)
            p95 = statistics.quantiles(times, n=20)[-1]
            print(f"{words:>3} words: CPU p50 {statistics.median(times):7.1f} ms, p95 {p95:7.1f} ms")
    finally:
        await database.close()


def _lines(name: str) -> Iterator[dict[str, str]]:
    with gzip.open(CORPORA / f"{name}.jsonl.gz", "rb") as lines:
        yield from (orjson.loads(line) for line in lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench.large_base")
    parser.add_argument("--database", type=Path, default=LARGE)
    parser.add_argument("--chunks", type=int, default=CHUNKS)
    given = parser.parse_args()
    asyncio.run(measure(given.database, given.chunks))
