"""Metrics and log lines of embedding: chunks that wait, what became of them, and what the database lacks."""

import structlog
from prometheus_client import Counter, Gauge

log = structlog.get_logger("backend.knowledge")

EMBEDDINGS = Counter(
    "ballast_embeddings_total",
    "Chunks by what became of them: embedded, reused (the vector of an equal text), refused by the model, failed",
    ["outcome"],
)
CHUNKS_WAITING = Gauge("ballast_chunks_waiting_for_vectors", "Chunks that wait for a vector, in the whole database")


class CountingEmbeddingObserver:
    """The `EmbeddingObserver` that counts; what the database lacks is logged once."""

    def __init__(self) -> None:
        self._told = ""

    def note_embedded(self, outcome: str, count: int) -> None:
        """Count."""
        EMBEDDINGS.labels(outcome).inc(count)

    def note_waiting(self, count: int) -> None:
        """Note how many wait."""
        CHUNKS_WAITING.set(count)

    def cannot_store(self, missing: str) -> None:
        """Log what is missing."""
        if missing != self._told:
            log.warning("No search by meaning: the database cannot hold vectors", missing=missing)
            self._told = missing
