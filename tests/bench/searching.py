"""Ingest and search through the backend's API, over 30,000 chunks and over 100,000."""

import asyncio
import random
import time
from collections.abc import Sequence
from itertools import accumulate

import httpx2
from sqlalchemy import Connection, text

from backend.foundation.sql.chosen import open_database
from backend.settings import DEFAULT_DATABASE_URL
from tests.bench.figures import Figure, percentile
from tests.bench.pair import BenchPair
from tests.bench.retrieval_speed import index_per_text
from tests.bench.stores import STORES, Store

CHUNKS = 30_000
MANY_CHUNKS = 100_000
INGEST_GOALS = {"sqlite": 3_000, "postgres": 1_500}
"""Chunks a second, by the name of the store."""

WORDS_A_PARAGRAPH = 240
PARAGRAPHS_A_DOCUMENT = 500
VOCABULARY_WORDS = 20_000
QUERIES = 200
WORDS_A_QUERY = 8
LONG_QUERIES = 40
WORDS_A_LONG_QUERY = 500
HITS = 10
SEED = 20_261_122
MERGE_PAUSE_SECONDS = 3.0
"""Longer than writing any segment of these sizes takes; a new one has a higher id."""


def vocabulary(rng: random.Random) -> list[str]:
    """Make pronounceable words, the same for a seed."""
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    words = {"".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(VOCABULARY_WORDS * 2)}
    return sorted(words)[:VOCABULARY_WORDS]


class Writer:
    """Writes text whose words follow Zipf's law, as in real text; the same for a seed."""

    def __init__(self) -> None:
        self._rng = random.Random(SEED)
        self._words = vocabulary(self._rng)
        self._rng.shuffle(self._words)
        self._weights = list(accumulate(1 / rank for rank in range(1, len(self._words) + 1)))

    def words(self, count: int) -> str:
        """Return so many words, frequent ones frequently."""
        return " ".join(self._rng.choices(self._words, cum_weights=self._weights, k=count))

    def document(self, paragraphs: int = PARAGRAPHS_A_DOCUMENT) -> bytes:
        """Return a document, by default of about 750 chunks, 280 tokens each by estimate."""
        return "\n\n".join(f"{self.words(WORDS_A_PARAGRAPH)}." for _ in range(paragraphs)).encode()


def search_figures(pair: BenchPair, store: Store) -> list[Figure]:
    """Fill a base, and time searches of words drawn like the text's own, frequent ones included."""
    writer, label = Writer(), STORES[store.name]
    with pair.client() as client:
        base = client.post("/v1/knowledge_bases", json={"name": "bench"}).json()["id"]
        filling = Filling(client, base, writer)
        filling.up_to(CHUNKS)
        waits = timed_searches(client, base, [writer.words(WORDS_A_QUERY) for _ in range(QUERIES)])
        few_memory = pair.memory_mb()["backend"]
        filling.up_to(MANY_CHUNKS)
        index = asyncio.run(index_once_merged(database_url(pair, store)))
        many_waits = timed_searches(client, base, [writer.words(WORDS_A_QUERY) for _ in range(QUERIES)])
        long_waits = timed_searches(client, base, [writer.words(WORDS_A_LONG_QUERY) for _ in range(LONG_QUERIES)])
    few, many = f"{CHUNKS:,} chunks through HTTP, {label}", f"{MANY_CHUNKS:,} chunks through HTTP, {label}"
    return [
        Figure(f"search over {few}, p50", percentile(waits, 0.5), "ms", 10),
        Figure(f"search over {few}, p99", percentile(waits, 0.99), "ms"),
        Figure(f"memory of the backend after {few}, and searches", few_memory, "MB", 130),
        Figure(
            f"ingest of {many}", filling.chunks / filling.seconds, "chunks/s", INGEST_GOALS[store.name], at_least=True
        ),
        Figure(f"search over {many}, p50", percentile(many_waits, 0.5), "ms", 20),
        Figure(f"search of {WORDS_A_LONG_QUERY} words over {many}, p50", percentile(long_waits, 0.5), "ms", 60),
        Figure(f"index per byte of text, {many}", index, "", 2.5),
        Figure(f"memory of the backend after {many}, and searches", pair.memory_mb()["backend"], "MB", 130),
    ]


class Filling:
    """Puts documents into a base, one after another; counts their chunks, and the seconds that the requests took."""

    def __init__(self, client: httpx2.Client, base: str, writer: Writer) -> None:
        self._client = client
        self._base = base
        self._writer = writer
        self.chunks = 0
        self.seconds = 0.0

    def up_to(self, chunks: int) -> None:
        """Put documents until they have so many chunks."""
        while self.chunks < chunks:
            path, body = f"/v1/knowledge_bases/{self._base}/documents/part-{self.chunks}.txt", self._writer.document()
            began = time.perf_counter()
            answer = self._client.put(path, content=body, headers={"Content-Type": "text/plain"})
            self.seconds += time.perf_counter() - began
            answer.raise_for_status()
            self.chunks += answer.json()["chunks"]


def timed_searches(client: httpx2.Client, base: str, queries: Sequence[str]) -> list[float]:
    """Search, and return for each search the milliseconds until the whole answer was there."""
    return [timed_search(client, base, query) for query in queries]


def timed_search(client: httpx2.Client, base: str, query: str) -> float:
    """Search, and return the milliseconds until the whole answer was there."""
    began = time.perf_counter()
    answer = client.post(f"/v1/knowledge_bases/{base}/search", json={"query": query, "max_results": HITS})
    milliseconds = (time.perf_counter() - began) * 1000
    answer.raise_for_status()
    if len(answer.json()["data"]) != HITS:
        raise RuntimeError(f"a search found {len(answer.json()['data'])} chunks, not {HITS}")
    return milliseconds


def database_url(pair: BenchPair, store: Store) -> str:
    """Return the address of the database that the backend has, seen from here."""
    default = DEFAULT_DATABASE_URL.replace(":///", f":///{pair.directory}/")
    return store.settings.get("BACKEND_DATABASE_URL", default)


async def index_once_merged(url: str) -> float:
    """Wait until the backend has merged the segments of its index, and return its bytes for each byte of text."""
    database = open_database(url)
    try:
        before, now = -1, await database.read(_last_segment)
        while now != before:
            await asyncio.sleep(MERGE_PAUSE_SECONDS)
            before, now = now, await database.read(_last_segment)
        return await database.read(index_per_text)
    finally:
        await database.close()


def _last_segment(connection: Connection) -> int:
    return int(connection.execute(text("SELECT MAX(id) FROM index_segment")).scalar_one())
