"""Search over 30,000 chunks through the backend's API."""

import random
import time
from itertools import accumulate

import httpx2

from tests.bench.figures import Figure, percentile
from tests.bench.pair import BenchPair

CHUNKS = 30_000
WORDS_A_CHUNK = 240
CHUNKS_A_DOCUMENT = 500
VOCABULARY_WORDS = 20_000
QUERIES = 200
WORDS_A_QUERY = 8
HITS = 10
SEED = 20_261_122


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

    def document(self) -> bytes:
        """Return a document whose paragraphs are about a chunk each."""
        return "\n\n".join(f"{self.words(WORDS_A_CHUNK)}." for _ in range(CHUNKS_A_DOCUMENT)).encode()


def search_figures(pair: BenchPair, label: str) -> list[Figure]:
    """Fill a base, then time searches of eight words drawn like the text's own, frequent ones included."""
    writer = Writer()
    with pair.client() as client:
        base = client.post("/v1/knowledge_bases", json={"name": "bench"}).json()["id"]
        chunks, ingest_seconds = fill(client, base, writer)
        waits = [timed_search(client, base, writer.words(WORDS_A_QUERY)) for _ in range(QUERIES)]
    return [
        Figure(f"search over {chunks:,} chunks through HTTP, {label}, p50", percentile(waits, 0.5), "ms", 10),
        Figure(f"search over {chunks:,} chunks through HTTP, {label}, p99", percentile(waits, 0.99), "ms"),
        Figure(f"ingest through HTTP, {label}", chunks / ingest_seconds, "chunks/s"),
        Figure(f"memory after ingest and searches, backend, {label}", pair.memory_mb()["backend"], "MB", 130),
    ]


def fill(client: httpx2.Client, base: str, writer: Writer) -> tuple[int, float]:
    """Put documents, one after another; return how many chunks they made, and the seconds that the requests took."""
    chunks, seconds = 0, 0.0
    while chunks < CHUNKS:
        path, body = f"/v1/knowledge_bases/{base}/documents/part-{chunks}.txt", writer.document()
        began = time.perf_counter()
        answer = client.put(path, content=body, headers={"Content-Type": "text/plain"})
        seconds += time.perf_counter() - began
        answer.raise_for_status()
        chunks += answer.json()["chunks"]
    return chunks, seconds


def timed_search(client: httpx2.Client, base: str, query: str) -> float:
    """Search, and return the milliseconds until the whole answer was there."""
    began = time.perf_counter()
    answer = client.post(f"/v1/knowledge_bases/{base}/search", json={"query": query, "max_results": HITS})
    milliseconds = (time.perf_counter() - began) * 1000
    answer.raise_for_status()
    if len(answer.json()["data"]) != HITS:
        raise RuntimeError(f"a search found {len(answer.json()['data'])} chunks, not {HITS}")
    return milliseconds
