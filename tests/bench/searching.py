"""Search over 30,000 chunks through the backend's API."""

import random
import time

from tests.bench.figures import Figure, percentile
from tests.bench.pair import BenchPair

CHUNKS = 30_000
WORDS_A_CHUNK = 240
CHUNKS_A_DOCUMENT = 500
VOCABULARY_WORDS = 20_000
QUERIES = 200
WORDS_A_QUERY = 8
SEED = 20_261_122


def vocabulary(rng: random.Random) -> list[str]:
    """Make pronounceable words, the same for a seed."""
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    words = {"".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(VOCABULARY_WORDS * 2)}
    return sorted(words)[:VOCABULARY_WORDS]


def document(words: list[str], weights: list[float], rng: random.Random) -> str:
    """Make a document whose paragraphs are about a chunk each; words follow Zipf's law, as in real text."""
    paragraphs = [" ".join(rng.choices(words, weights, k=WORDS_A_CHUNK)) + "." for _ in range(CHUNKS_A_DOCUMENT)]
    return "\n\n".join(paragraphs)


def search_figures(pair: BenchPair, label: str) -> list[Figure]:
    """Fill a base, then time searches of eight words drawn like the text's own, frequent ones included."""
    rng = random.Random(SEED)
    words = vocabulary(rng)
    rng.shuffle(words)
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    with pair.client() as client:
        base = client.post("/v1/knowledge_bases", json={"name": "bench"}).json()["id"]
        chunks, began = 0, time.perf_counter()
        while chunks < CHUNKS:
            body = document(words, weights, rng).encode()
            name = f"/v1/knowledge_bases/{base}/documents/part-{chunks}.txt"
            answer = client.put(name, content=body, headers={"Content-Type": "text/plain"})
            answer.raise_for_status()
            chunks += answer.json()["chunks"]
        ingest_seconds = time.perf_counter() - began
        waits: list[float] = []
        for _ in range(QUERIES):
            query = {"query": " ".join(rng.choices(words, weights, k=WORDS_A_QUERY)), "max_results": 10}
            sent = time.perf_counter()
            found = client.post(f"/v1/knowledge_bases/{base}/search", json=query)
            waits.append((time.perf_counter() - sent) * 1000)
            found.raise_for_status()
    return [
        Figure(f"search over {chunks:,} chunks through HTTP, {label}, p50", percentile(waits, 0.5), "ms", 10),
        Figure(f"search over {chunks:,} chunks through HTTP, {label}, p99", percentile(waits, 0.99), "ms"),
        Figure(f"ingest through HTTP, {label}", chunks / ingest_seconds, "chunks/s"),
    ]
