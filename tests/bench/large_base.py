"""Search at the size of a company, through HTTP: `make bench-search`, or `python -m tests.bench.large_base`.

The documents are paragraphs of the corpora (`BALLAST_CORPORA`), or made-up words where these are not there, put
together anew: two thirds English, 5 to 200 kB. CPU is that of the backend in all its threads and children: what other
programs do meanwhile counts little.

    python -m tests.bench.large_base --store sqlite --store postgres --chunks 235000
    python -m tests.bench.large_base --backend /another/tree    # the state before: its code, these questions
"""

import argparse
import asyncio
import gzip
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import httpx2
import orjson
import psutil
from sqlalchemy import Connection, text

from backend.foundation.sql.chosen import open_database
from backend.search.domain.bm25 import Scorer, Statistics, plan
from backend.search.domain.tokenizing import count_terms, query_terms, tokenize_indexed
from tests.bench.figures import percentile
from tests.bench.pair import BenchPair, bench_pair, cpu_seconds_of
from tests.bench.searching import Writer, database_url, index_once_merged
from tests.bench.stores import STORES, Store, bench_store

ROOT = Path(__file__).parents[2]
CORPORA = Path(os.environ.get("BALLAST_CORPORA") or ROOT.parent / "shared" / "corpora")
CHUNKS = 235_000
WORDS = (1, 5, 20)
QUERIES = 60
UPDATES = 40
HITS = 10
SHARE_READABLE = 100
"""One chunk in so many is in the base of the caller whose recall is measured."""


class Measured(NamedTuple):
    """A figure, and the bar that it has to stay below (or above, for an amount of work)."""

    name: str
    value: float
    unit: str
    bar: str = ""


@cache
def paragraphs() -> tuple[Sequence[str], Sequence[str]]:
    """Return the English and the Chinese paragraphs of the corpora; made-up ones where these are not there."""
    if not CORPORA.is_dir():
        writer = Writer()
        made_up = [writer.words(dice) for dice in random.Random(0).choices(range(40, 400), k=4_000)]
        return made_up, made_up
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


def queries(dice: random.Random, words: int, language: int) -> Iterator[str]:
    """Yield questions without end, whose words stand beside each other in a paragraph."""
    while True:
        paragraph = dice.choice(paragraphs()[language])
        said = paragraph.split() if language == 0 else [paragraph[at : at + 2] for at in range(0, len(paragraph), 2)]
        if len(said) >= words:
            begin = dice.randrange(len(said) - words + 1)
            yield (" " if language == 0 else "").join(said[begin : begin + words])


class LargeBase:
    """A backend, and the bases of which it is asked."""

    def __init__(self, pair: BenchPair, client: httpx2.Client) -> None:
        self._client = client
        self._backend = psutil.Process(pair.backend.pid)

    def create(self, name: str) -> str:
        """Create a base; return its id."""
        return self._client.post("/v1/knowledge_bases", json={"name": name}).json()["id"]

    def put(self, base: str, name: str, body: bytes) -> int:
        """Put a document; return how many chunks it has."""
        path = f"/v1/knowledge_bases/{base}/documents/{name}"
        answer = self._client.put(path, content=body, headers={"Content-Type": "text/markdown"})
        answer.raise_for_status()
        return answer.json()["chunks"]

    def fill(self, base: str, chunks: int, dice: random.Random) -> int:
        """Put documents until the base has so many chunks; return how many it has."""
        put = 0
        for number, body in enumerate(documents(dice)):
            put += self.put(base, f"{number}.md", body)
            if number % 200 == 0:
                sys.stderr.write(f"{put} chunks of {chunks}\n")
            if put >= chunks:
                return put
        return put

    def search(self, base: str, query: str) -> list[str]:
        """Return the texts that a search finds."""
        asked = {"query": query, "max_results": HITS}
        answer = self._client.post(f"/v1/knowledge_bases/{base}/search", json=asked)
        answer.raise_for_status()
        return [hit["text"] for hit in answer.json()["data"]]

    def cpu(self) -> float:
        """Return the CPU seconds that the backend has used."""
        return cpu_seconds_of(self._backend)

    def time_searches(self, base: str, words: int, language: int) -> tuple[list[float], list[float]]:
        """Return the milliseconds of CPU of each search, and those until its answer was there."""
        asked = queries(random.Random(words), words, language)
        for query in islice(asked, QUERIES // 2):
            self.search(base, query)
        spent, waited = list[float](), list[float]()
        for query in islice(asked, QUERIES):
            cpu, began = self.cpu(), time.perf_counter()
            self.search(base, query)
            waited.append((time.perf_counter() - began) * 1000)
            spent.append((self.cpu() - cpu) * 1000)
        return spent, waited


def measure_searches(large: LargeBase, base: str, bar: str) -> Iterator[Measured]:
    """Search by few and by many words, in both languages."""
    for words in WORDS:
        for language, name in enumerate(("English", "Chinese")):
            spent, waited = large.time_searches(base, words, language)
            label = f"search of {words} words, {name}"
            yield Measured(f"{label}, CPU p50", statistics.median(spent), "ms", bar)
            yield Measured(f"{label}, CPU p95", percentile(spent, 0.95), "ms")
            yield Measured(f"{label}, wall p95", percentile(waited, 0.95), "ms", "<= 25")


def measure_updates(large: LargeBase, base: str) -> Measured:
    """Replace documents of four chunks; merging what they leave is part of it."""
    english, _ = paragraphs()
    dice, parts = random.Random(3), list[str]()
    while large.put(base, "small.md", "\n\n".join(parts).encode() or b"-") < 4:
        parts.append(dice.choice(english))
    began = large.cpu()
    for number in range(UPDATES):
        large.put(base, "small.md", "\n\n".join((*parts, f"Version {number}")).encode())
    return Measured("update of a document of four chunks", (large.cpu() - began) / UPDATES * 1000, "ms CPU", "<= 15")


async def find_exactly(url: str, base: str, asked: Sequence[str]) -> list[list[tuple[float, str]]]:
    """Score all chunks of a base, one by one; return for each question all that have a word of it, best first."""
    database = open_database(url)
    rows = await database.read(lambda connection: _read_chunks(connection, base))
    await database.close()
    indexed = [(tokenize_indexed(found_by), said) for found_by, said in rows]
    counted = [(Counter([*one.tokens, *one.further]), len(one.tokens), said) for one, said in indexed]
    ranked = list[list[tuple[float, str]]]()
    for query in asked:
        terms = query_terms(query)
        found = [(count_terms(terms, counts), length, said) for counts, length, said in counted]
        having = Counter(term for counts, _, _ in found for term in counts)
        size = sum(length for _, length, _ in found)
        known = Statistics(chunk_count=len(found), token_count=size, chunk_counts=having)
        scorer = Scorer(plan(terms, known), known)
        scores = ((scorer.score(counts, length), said) for counts, length, said in found if counts)
        ranked.append(sorted(scores, key=lambda one: (-one[0], one[1])))
    return ranked


def _read_chunks(connection: Connection, base: str) -> list[tuple[str, str]]:
    query = text("SELECT heading_path, text FROM chunk WHERE knowledge_base_id = :base")
    rows = connection.execute(query, {"base": base}).all()
    return [("\n".join((*orjson.loads(headings), said)), said) for headings, said in rows]


def measure_recall(large: LargeBase, base: str, url: str) -> Measured:
    """Compare what is found in a small base, beside the large one, with a ranking of all of its chunks."""
    asked = [query for language in (0, 1) for query in islice(queries(random.Random(4), 5, language), 20)]
    exact = asyncio.run(find_exactly(url, base, asked))
    best = [[said for _, said in ranked[:HITS]] for ranked in exact]
    found = sum(len(set(large.search(base, query)) & set(texts)) for query, texts in zip(asked, best, strict=True))
    share = found / max(sum(len(set(texts)) for texts in best), 1)
    return Measured(f"recall of a caller who may read 1/{SHARE_READABLE}", share * 100, "%", "100")


def measure(store: Store, pair: BenchPair, chunks: int) -> Iterator[Measured]:
    """Fill a large base and a small one, and ask."""
    with pair.client() as client:
        large, bar = LargeBase(pair, client), "<= 6" if chunks <= CHUNKS else "<= 15"
        base, small = large.create("large"), large.create("small")
        large.fill(small, max(chunks // SHARE_READABLE, 1), random.Random(1))
        large.search(small, "word")
        memory, began = pair.memory_mb()["backend"], large.cpu()
        put = large.fill(base, chunks, random.Random(0))
        index = asyncio.run(index_once_merged(database_url(pair, store)))
        yield Measured(f"ingest of {put:,} chunks", put / (large.cpu() - began), "chunks/CPU s", ">= 1,500")
        yield Measured("index per byte of text", index, "", "<= 0.5")
        yield from measure_searches(large, base, bar)
        yield measure_updates(large, base)
        yield measure_recall(large, small, database_url(pair, store))
        yield Measured("memory above that of a small base", pair.memory_mb()["backend"] - memory, "MB", "<= 64")


def main() -> None:
    """Measure each store, and print a table of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.large_base")
    parser.add_argument("--store", choices=list(STORES), action="append")
    parser.add_argument("--chunks", type=int, default=CHUNKS)
    parser.add_argument("--backend", type=Path, default=ROOT, help="the tree whose backend is measured")
    given = parser.parse_args()
    both, python = {"PYTHONPATH": str(given.backend)}, str(given.backend / ".venv" / "bin" / "python")
    for name in given.store or STORES:
        with (
            tempfile.TemporaryDirectory() as directory,
            bench_store(name) as store,
            bench_pair(Path(directory), store.settings, both, python) as pair,
        ):
            print(f"\n{given.chunks:,} chunks, {STORES[name]}")
            for one in measure(store, pair, given.chunks):
                print(f"  {one.name:<48} {one.value:>10.2f} {one.unit:<13} {one.bar}", flush=True)


def _lines(name: str) -> Iterator[dict[str, str]]:
    with gzip.open(CORPORA / f"{name}.jsonl.gz", "rb") as lines:
        yield from (orjson.loads(line) for line in lines)


if __name__ == "__main__":
    main()
