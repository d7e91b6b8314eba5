"""Metrics and log lines of a search engine beside the database."""

import structlog
from prometheus_client import Counter

log = structlog.get_logger("backend.search")

ENGINE_SEARCHES = Counter(
    "ballast_engine_searches_total",
    "Searches by words where an engine is set: answered by the engine, or by the database while it was behind or away",
    ["outcome"],
)


class CountingEngineObserver:
    """The `EngineObserver` that counts and logs."""

    def note_search(self, outcome: str) -> None:
        """Count."""
        ENGINE_SEARCHES.labels(outcome).inc()

    def note_incomplete(self, base_id: str, held: int, chunks: int) -> None:
        """Log it once for each time that all is told again."""
        log.warning("The search engine is told of a base again", base_id=base_id, held=held, chunks=chunks)

    def note_failure(self, reason: str) -> None:
        """Log it."""
        log.warning("The search engine cannot be used: the database answers searches", reason=reason)
